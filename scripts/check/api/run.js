// npm run check -- api [--write] [--no-pages]: the public surface of each package is what its report says
// (packages/NAME/api.md), a report that has changed comes with a changeset, and the reference is written to docs/api.
// `--write` writes the reports; a changeset it cannot write. Exit 1 where something is missing.
import { readFileSync } from 'node:fs'
import { pendingChangesets } from '../../changesets.js'
import { publicPackages } from '../../workspace.js'
import { writeOrCompare } from '../written.js'
import { baseCommit, fileAt } from './base.js'
import { writePages } from './pages.js'
import { publicSurface } from './reports.js'

const PAGES = 'docs/api'
const base = baseCommit()
if (!base) console.log('This is no git repository, so no change of the surface can be seen')
// A changeset counts for the change that it came with.
const added = pendingChangesets().filter(
  ({ path }) => base && fileAt(base, path) !== readFileSync(path, 'utf8'),
)
/** @type {[path: string, surface: string][]} */
const reports = []
let wrong = 0
for (const published of publicPackages()) {
  const { folder, manifest } = published
  const surface = publicSurface(published)
  reports.push([`${folder}/api.md`, surface])
  const before = base && reportAt(base, folder)
  const changed = before !== undefined && before !== surface
  console.log(`${manifest.name}: ${surface.split('\n').length} lines${changed ? ', changed' : ''}`)
  if (!changed || added.some(({ packages }) => packages.includes(manifest.name))) continue
  wrong++
  console.error(
    `${manifest.name}: the public surface has changed, and no new changeset names it (npx changeset)`,
  )
}
writeOrCompare('api', reports)
if (!process.argv.includes('--no-pages')) {
  const problems = await writePages(publicPackages(), PAGES)
  wrong += problems
  console.log(`${PAGES}: written, ${problems} errors and warnings`)
}
if (wrong > 0) process.exitCode = 1

/**
 * The report at a commit: empty where the package is new, nothing where it had none yet.
 * @param {string} commit
 * @param {string} folder
 */
function reportAt(commit, folder) {
  const isNew = fileAt(commit, `${folder}/package.json`) === undefined
  return fileAt(commit, `${folder}/api.md`) ?? (isNew ? '' : undefined)
}

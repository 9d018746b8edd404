// npm run check -- api [--write] [--no-pages]: the public surface of each package is what its report says
// (packages/NAME/api.md), a report that has changed comes with a changeset, and the reference is written to docs/api.
// `--write` writes the reports; a changeset it cannot write. Exit 1 where something is missing.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { devNull } from 'node:os'
import { pendingChangesets } from '../../changesets.js'
import { publicPackages } from '../../workspace.js'
import { baseCommit, fileAt } from './base.js'
import { problemsOf } from './change.js'
import { writePages } from './pages.js'
import { publicSurface } from './reports.js'

const PAGES = 'docs/api'
const isWriting = process.argv.includes('--write')
const base = baseCommit()
if (!base) console.log('This is no git repository, so no change of the surface can be seen')
// A changeset counts for the change that it came with.
const added = pendingChangesets().filter(
  ({ path }) => base && fileAt(base, path) !== readFileSync(path, 'utf8'),
)
let wrong = 0
for (const published of publicPackages()) {
  for (const problem of check(published)) {
    wrong++
    console.error(problem)
  }
}
if (!process.argv.includes('--no-pages')) {
  const problems = await writePages(publicPackages(), PAGES)
  wrong += problems
  console.log(`${PAGES}: written, ${problems} errors and warnings`)
}
process.exitCode = wrong === 0 ? 0 : 1

/**
 * The number of mistakes in its surface, which are printed; with `--write` the surface is written to its report.
 * @param {import('../../workspace.js').PublicPackage} published
 */
function check(published) {
  const { folder, manifest } = published
  const path = `${folder}/api.md`
  const surface = publicSurface(published)
  if (isWriting) writeFileSync(path, surface)
  const before = base && reportAt(base, folder)
  const changed = before !== undefined && before !== surface
  console.log(`${manifest.name}: ${surface.split('\n').length} lines${changed ? ', changed' : ''}`)
  const reported = existsSync(path) ? readFileSync(path, 'utf8') : ''
  if (surface !== reported) {
    const args = ['diff', '--no-index', '--', existsSync(path) ? path : devNull, '-']
    spawnSync('git', args, { input: surface, stdio: ['pipe', 'inherit', 'inherit'] })
  }
  return problemsOf({ name: manifest.name, path, surface, reported, ...(changed && { before }) }, added)
}

/**
 * The report at a commit: empty where the package is new, nothing where it had none yet.
 * @param {string} commit
 * @param {string} folder
 */
function reportAt(commit, folder) {
  const isNew = fileAt(commit, `${folder}/package.json`) === undefined
  return fileAt(commit, `${folder}/api.md`) ?? (isNew ? '' : undefined)
}

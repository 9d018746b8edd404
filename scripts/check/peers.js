// Lists the packages of docs/migrate that have a newer version than package-lock.json: npm run check -- peers. Exit 1 if one has.
// A weekly job runs it, and not CI: what others publish must not break a change.
import { spawnSync } from 'node:child_process'
import { npmProgram } from '../npm.js'
import { PEERS } from '../verify/migrate/peers.js'

const names = new Set(
  Object.values(PEERS).flatMap(({ there }) => there.filter((name) => /^@?\w[\w-]*(?:\/[\w-]+)?$/.test(name))),
)
const { stdout } = spawnSync(process.execPath, [npmProgram(), 'outdated', '--json', ...names], {
  encoding: 'utf8',
})
/** A version as each package that depends on it has it, ours among them. @typedef {{ current: string, latest: string }} Version */
/** @type {Readonly<Record<string, Version | readonly Version[]>>} */
const outdated = JSON.parse(stdout || '{}')

for (const [name, versions] of Object.entries(outdated)) {
  const { current, latest } = /** @type {Version} */ ([versions].flat()[0])
  console.log(`${name}: ${current} here, ${latest} is out`)
}
console.log(`${names.size} packages, ${Object.keys(outdated).length} with a newer version`)
process.exitCode = Object.keys(outdated).length > 0 ? 1 : 0

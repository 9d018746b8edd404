// Lists the packages of docs/migrate that have a newer version than package-lock.json: npm run check -- peers. Exit 1 if one has.
// A weekly job runs it, and not CI: what others publish must not break a change.
import { npm } from '../npm.js'
import { PEERS } from '../verify/migrate/peers.js'

const names = new Set(
  Object.values(PEERS).flatMap(({ there }) => there.filter((name) => /^@?\w[\w-]*(?:\/[\w-]+)?$/.test(name))),
)
process.exitCode = npm(['outdated', ...names])

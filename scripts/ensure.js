// Installs programs that are missing where it can: node scripts/ensure.js lua|prometheus|redis. Exit 1 where they are missing still.
import { missingProgram } from './programs.js'

const missing = missingProgram(/** @type {import('./programs.js').Program} */ (process.argv[2]))
if (missing) console.log(missing)
process.exitCode = missing ? 1 : 0

// Lists the mistakes of `npm run verify -- sabotage` whose text does not stand exactly once in its file, so that an edit of a
// quoted line is noticed in a second and not in the run itself: npm run check -- mistakes.
import { misplaced, mistakes } from '../verify/sabotage/mistakes.js'

const wrong = misplaced()
for (const line of wrong) console.log(line)
console.log(`${mistakes.length} mistakes, ${wrong.length} without their place`)
process.exitCode = wrong.length > 0 ? 1 : 0

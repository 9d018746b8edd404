// Lists the mistakes of `npm run verify -- sabotage` whose text does not stand exactly once in its file, or which are no code any
// more, so that an edit of a quoted line is noticed in a second and not in the run itself: npm run check -- mistakes.
import { transformSync } from 'esbuild'
import { readFileSync } from 'node:fs'
import { misplaced, mistakes, pairs } from '../verify/sabotage/mistakes.js'

const all = [...mistakes, ...pairs]
const wrong = misplaced()
for (const { row, mistake, file, text, broken } of all.filter((each) => each.file.endsWith('.ts'))) {
  try {
    const source = readFileSync(file, 'utf8').replace(text, () => broken)
    transformSync(source, {
      loader: 'ts',
      tsconfigRaw: { compilerOptions: { experimentalDecorators: true } },
    })
  } catch (error) {
    wrong.push(`${row ? `row ${row}` : mistake}: ${JSON.stringify(broken)} is no code: ${String(error)}`)
  }
}
for (const line of wrong) console.log(line)
console.log(`${all.length} mistakes, ${wrong.length} that cannot be made`)
process.exitCode = wrong.length > 0 ? 1 : 0

// Breaks one mechanism after another in a copy of the sources and shows that its row of the fault matrix fails, which
// passes on what is not broken: npm run verify -- sabotage [8 13]. Exit 1 where a mistake is not caught. With --simulated seeds of
// the simulation look for the mistakes that it runs, and --write keeps what they find in packages/simulation/found.md.
import { spawnSync } from 'node:child_process'
import { onSources } from '../subjects.js'
import { misplaced, mistakes } from './sabotage/mistakes.js'
import { breakIt, copySources, removeCopy, runRow } from './sabotage/sandbox.js'

if (process.argv.includes('--simulated')) {
  const options = process.argv.slice(2).filter((option) => option !== '--simulated')
  const command = [...onSources, 'packages/simulation/src/run.ts', '--mistakes', ...options]
  process.exit(spawnSync(process.execPath, command, { stdio: 'inherit' }).status ?? 1)
}
const wanted = process.argv.slice(2).map(Number)
const chosen = mistakes
  .filter(({ row }) => wanted.length === 0 || wanted.includes(row))
  .toSorted((a, b) => a.row - b.row)

const without = wanted.find((row) => !chosen.some((each) => each.row === row))
if (without !== undefined) throw new Error(`no mistake is planted for row ${without}`)
const wrong = misplaced(chosen)
if (wrong.length > 0) throw new Error(wrong.join('\n'))
const began = performance.now()
copySources()
try {
  let caught = 0
  for (const row of new Set(chosen.map((mistake) => mistake.row))) {
    const sound = await runRow(row)
    print(sound.pass ? 'pass' : 'FAIL', row, 'nothing is broken', '', sound.figure)
    if (!sound.pass) continue // it would fail with any mistake
    for (const mistake of chosen.filter((each) => each.row === row)) {
      const mend = breakIt(mistake)
      const { pass, figure } = await runRow(row)
      mend()
      if (!pass) caught++
      print(pass ? 'MISSED' : 'caught', row, mistake.mechanism, mistake.mistake, figure)
    }
  }
  const seconds = Math.round((performance.now() - began) / 1000)
  console.log(`${caught} of ${chosen.length} mistakes caught, in ${seconds} s`)
  process.exitCode = caught === chosen.length ? 0 : 1
} finally {
  removeCopy()
}

/** @param {string} verdict @param {number} row @param {string} mechanism @param {string} mistake @param {string} figure */
function print(verdict, row, mechanism, mistake, figure) {
  const columns = [verdict.padEnd(6), `row ${row}`.padEnd(6), mechanism.padEnd(17), mistake.padEnd(58)]
  console.log(`${columns.join('  ')}  ${figure.length > 300 ? `${figure.slice(0, 300)} ...` : figure}`)
}

import type { Outcome, Row } from './row.js'
import { rows } from './rows.js'

/** Runs every row in full and prints a line for each; `node run.ts 18 20` runs those alone. */
async function main(wanted: readonly number[]): Promise<void> {
  let failed = 0
  for (const row of rows) {
    if (wanted.length > 0 && !wanted.includes(row.number)) continue
    const { pass, figure } = await outcomeOf(row)
    if (!pass) failed++
    console.log(
      `${pass ? 'pass' : 'FAIL'}  ${String(row.number).padStart(2)}  ${row.fault.padEnd(24)} ${figure}`,
    )
  }
  process.exitCode = failed === 0 ? 0 : 1
}

/** A row that breaks has not passed, and keeps no other from being run. */
async function outcomeOf(row: Row): Promise<Outcome> {
  try {
    return await row.run(1)
  } catch (error) {
    return { pass: false, figure: String((error as Error).stack) }
  }
}

void main(process.argv.slice(2).map(Number))

import type { Outcome, Row } from './row.js'
import { rows } from './matrix.js'

/** A small one shows that a row fails where it should (scripts/verify/sabotage.js). */
const share = Number(process.env['FAULTS_SHARE'] ?? 1)

/** Runs every row in full and prints a line for each, and the warnings that no row states; `node run.ts 18 20` runs those alone. */
async function main(wanted: readonly number[]): Promise<void> {
  if (!(share > 0))
    throw new Error(`FAULTS_SHARE must be a number above 0, got '${process.env['FAULTS_SHARE']}'`)
  const unknown = wanted.filter((number) => !rows.some((row) => row.number === number))
  if (unknown.length > 0) throw new Error(`there is no row ${unknown.join(', ')}`)
  const chosen = rows.filter((row) => wanted.length === 0 || wanted.includes(row.number))
  const began = performance.now()
  console.warn = () => {} // clients with default settings do, of a permission that they can do without (row 17)
  const printers = process.listeners('warning')
  let stated: readonly unknown[] = []
  process.removeAllListeners('warning').on('warning', (warning: Error & { readonly code?: string }) => {
    if (!stated.includes(warning.code)) for (const print of printers) print(warning)
  })
  let failed = 0
  for (const row of chosen) {
    const started = performance.now()
    stated = [...(row.warnings ?? []), ...(row.perhaps ?? [])]
    const { pass, figure } = await outcomeOf(row)
    if (!pass) failed++
    const columns = [String(row.number).padStart(2), row.fault.padEnd(20), secondsSince(started).padStart(5)]
    console.log(`${pass ? 'pass' : 'FAIL'}  ${columns.join('  ')} s  ${figure}`)
  }
  console.log(`${chosen.length - failed} of ${chosen.length} rows pass, in ${secondsSince(began)} s`)
  process.exitCode = failed === 0 ? 0 : 1
}

/** The seconds since an instant of `performance.now()`, as text. */
function secondsSince(started: number): string {
  return ((performance.now() - started) / 1000).toFixed(1)
}

/** Runs a row of the fault matrix. Its outcome is whether it passed, and what it shows (`figure`): for a row that throws the error, so that the other rows still run. */
async function outcomeOf(row: Row): Promise<Outcome> {
  try {
    return await row.run(share)
  } catch (error) {
    return { pass: false, figure: String((error as Error).stack) }
  }
}

void main(process.argv.slice(2).map(Number))

import { contradiction } from './promtool.js'
import { Recording } from './recording.js'
import { scenarios } from './scenarios.js'

/** Prints for each scenario whether exactly its alerts fire on what a registry recorded of it; numbers choose scenarios. */
async function main(wanted: readonly number[]): Promise<void> {
  let failed = 0
  for (const [i, { title, alerts, run }] of scenarios.entries()) {
    if (wanted.length > 0 && !wanted.includes(i + 1)) continue
    const recording = new Recording()
    await run(recording.watch, recording.watchPolicies)
    const wrong = contradiction(recording, alerts)
    if (wrong) failed++
    const named = alerts.join(', ') || 'none'
    console.log(
      `${wrong ? 'FAIL' : 'pass'}  ${i + 1}  ${title}: ${wrong ?? `exactly these alerts fire: ${named}`}`,
    )
  }
  process.exitCode = failed === 0 ? 0 : 1
}

void main(process.argv.slice(2).map(Number))

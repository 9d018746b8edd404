import { monitorEventLoopDelay } from 'node:perf_hooks'
import { proofs } from './proofs.js'

/** Runs every proof in full and prints a line for each; `node run.ts order trouble` runs those alone. */
async function main(wanted: readonly string[]): Promise<void> {
  let failed = 0
  for (const { title, run } of proofs) {
    if (wanted.length > 0 && !wanted.some((word) => title.startsWith(word))) continue
    const delay = monitorEventLoopDelay({ resolution: 10 })
    delay.enable()
    const { pass, figure } = await run(1)
    const lateMs = ((delay.max - 10e6) / 1e6).toFixed(0) // how busy the machine was: no call is more punctual than it
    if (!pass) failed++
    console.log(
      `${pass ? 'pass' : 'FAIL'}  ${title.padEnd(14)} ${figure} (timers here up to ${lateMs} ms late)`,
    )
  }
  process.exitCode = failed === 0 ? 0 : 1
}

void main(process.argv.slice(2))

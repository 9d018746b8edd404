import { setTimeout as sleep } from 'node:timers/promises'
import type { AdaptiveJob, AdaptiveReport } from './job.js'
import { limitedBy } from './limited.js'

/*
 * A worker of a fleet under a limit that it knows or searches: its callers call for as long as its job says.
 */
const job = JSON.parse(process.argv[2]!) as AdaptiveJob
const send = limitedBy[job.kind](job)
let unserved = 0

process.on('disconnect', () => process.exit())
process.once('message', () => void work())
Promise.all([reach(), ...Array.from({ length: 8 }, warmUp)]).then(
  () => process.send!('ready'),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)

/** The first calls of a process are slow: code is loaded, connections are made, to Redis too. */
async function warmUp(): Promise<void> {
  await (await fetch(`${job.origin}/warm`)).text()
}

/** The first answer of a store may take longer than its deadline where all processes start at once. */
async function reach(): Promise<void> {
  while (!(await send(`${job.origin}/warm`).catch(() => undefined))) await sleep(50)
}

async function work(): Promise<void> {
  const end = performance.now() + job.forMs
  await Promise.all(Array.from({ length: job.callers }, () => call(end)))
  const report: AdaptiveReport = { unserved }
  process.send!(report)
}

async function call(end: number): Promise<void> {
  while (performance.now() < end) {
    try {
      const response = await send(`${job.origin}/`)
      await response.text()
      if (!response.ok) unserved++
    } catch {
      unserved++
    }
  }
}

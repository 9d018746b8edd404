import type { PeerJob, PeerReport } from './job.js'
import { limitedBy } from './limited.js'

/*
 * A worker of a fleet that limits itself by one of the libraries: calls for as long as its job says.
 */
const job = JSON.parse(process.argv[2]!) as PeerJob
const { send, ready, close } = limitedBy[job.kind](job)

process.on('disconnect', () => process.exit())
process.once('message', () => void work())
Promise.all([ready?.(), ...Array.from({ length: 8 }, warmUp)]).then(
  () => process.send!('ready'),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)

async function warmUp(): Promise<void> {
  await (await fetch(`${job.origin}/warm`)).text()
}

async function work(): Promise<void> {
  const end = performance.now() + job.forMs
  const before = process.cpuUsage()
  await Promise.all(Array.from({ length: job.callers }, () => call(end)))
  const { user, system } = process.cpuUsage(before)
  const report: PeerReport = { cpuMs: (user + system) / 1000 }
  await close?.()
  process.send!(report)
}

async function call(end: number): Promise<void> {
  while (performance.now() < end) {
    const response = await send(job.origin)
    await response.text()
    if (job.thinkMs > 0) await new Promise((resolve) => setTimeout(resolve, job.thinkMs))
  }
}

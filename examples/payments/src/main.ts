import { workApart, workTogether } from './fleet.js'
import { showLive } from './live.js'
import { type Options, readOptions, USAGE, UsageError } from './options.js'
import { Provider } from './provider.js'
import { startRedis } from './redis-server.js'
import { line, screen } from './screen.js'
import { summarize } from './summary.js'
import { paint } from './table.js'
import { Tally } from './tally.js'
import type { Job } from './worker.js'

const WORKERS = 4
const CUSTOMER_EACH_MS = 500
const OUT_OF_ORDER_MS = 1500

process.exitCode = await main(process.argv.slice(2))

/** Returns the exit code: 0 when everything that was promised held, 1 when it did not, 2 for misuse. */
async function main(args: string[]): Promise<number> {
  try {
    const options = readOptions(args)
    if (options !== 'help') return await run(options)
    console.log(USAGE)
    return 0
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    console.error(`${error.message}\n\n${USAGE}`)
    return 2
  }
}

async function run({ redis, payments }: Options): Promise<number> {
  const server = redis ? await startRedis() : undefined
  const provider = new Provider()
  const origin = await provider.start()
  const shares = Array.from({ length: WORKERS }, (_, i) => Math.floor((payments + i) / WORKERS))
  const tally = new Tally(shares)
  const jobs = shares.map((share, worker): Job => {
    return { worker, origin, payments: share, customerEachMs: worker === 0 ? CUSTOMER_EACH_MS : undefined }
  })
  const title = `${paint('bold', 'Sluice')} at work: ${payments} payments by ${WORKERS} workers, ${
    server ? `each a process, with Redis on port ${server.port}` : 'in one process, with a memory store'
  }`
  const stop = stopSignal()
  const startedAt = performance.now()
  const finish = show(title, tally, provider)
  const halfway = setInterval(() => {
    if (tally.allPaid < payments / 2) return
    clearInterval(halfway)
    provider.breakFor(OUT_OF_ORDER_MS)
  }, 20)
  const hear = tally.hear.bind(tally)
  try {
    await (server ? workApart(jobs, hear, stop, server) : workTogether(jobs, hear, stop))
  } finally {
    clearInterval(halfway)
    finish()
    provider.close()
    await server?.stop()
  }
  const { text, held } = summarize(tally, provider, performance.now() - startedAt)
  console.log(`\n${stop.aborted ? 'Stopped early.\n\n' : ''}${text}`)
  return held ? 0 : 1
}

function show(title: string, tally: Tally, provider: Provider): () => void {
  if (process.stdout.isTTY && process.env['TERM'] !== 'dumb') {
    return showLive(process.stdout, (width) => screen(title, tally, provider, width))
  }
  console.log(`${title}\n`)
  const timer = setInterval(() => console.log(line(tally, provider)), 1000)
  return () => clearInterval(timer)
}

/** Aborts at Ctrl-C or SIGTERM, and when nobody reads the output any more, as after `| head`. */
function stopSignal(): AbortSignal {
  const controller = new AbortController()
  const stop = (): void => controller.abort()
  process.on('SIGINT', stop).on('SIGTERM', stop)
  process.stdout.on('error', stop)
  return controller.signal
}

import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { curlLines } from './curl.js'
import { showLive } from './live.js'
import { type Options, readOptions, USAGE, UsageError } from './options.js'
import { printPlain } from './plain.js'
import { routes } from './scenario.js'
import { screen } from './screen.js'
import { app } from './server.js'
import { summarize } from './summary.js'
import { paint } from './table.js'
import { Tally } from './tally.js'
import { sendTraffic } from './traffic.js'

process.exitCode = await main(process.argv.slice(2))

/** Returns the exit code: 0 when every limit held, 1 when one did not or no server could be started, 2 for misuse. */
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

async function run({ serve, port, seconds }: Options): Promise<number> {
  const stop = stopSignal()
  const server = createServer(app).listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (error) {
    console.error(`Cannot listen on port ${port}: ${(error as Error).message}`)
    return 1
  }
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    return serve ? await serveUntil(stop, origin) : await demonstrate(origin, seconds, stop)
  } finally {
    close(server)
  }
}

async function serveUntil(stop: AbortSignal, origin: string): Promise<number> {
  console.log(`Serving on ${origin} until Ctrl-C. In another terminal:\n\n${curlLines(origin)}`)
  if (!stop.aborted) await once(stop, 'abort')
  return 0
}

async function demonstrate(origin: string, seconds: number, stop: AbortSignal): Promise<number> {
  const tallies = routes.flatMap((route) => route.callers.map((caller) => new Tally(route, caller)))
  const title = `${paint('bold', 'Sluice')} at work: ${seconds} seconds of HTTP traffic to ${origin}`
  const startedAt = performance.now()
  const elapsed = (): string => paint('dim', `${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
  const finish =
    process.stdout.isTTY && process.env['TERM'] !== 'dumb'
      ? showLive(process.stdout, (width) => screen(`${title}  ${elapsed()}`, tallies, width))
      : printPlain(title, tallies)
  await sendTraffic(origin, seconds, tallies, stop)
  finish()
  const { text, held } = summarize(tallies)
  console.log(`\n${text}`)
  return held ? 0 : 1
}

/** Aborts at Ctrl-C or SIGTERM, and when nobody reads the output any more, as after `npm start | head`. */
function stopSignal(): AbortSignal {
  const controller = new AbortController()
  const stop = (): void => controller.abort()
  // Each may come twice, since npm passes on what the terminal has already sent.
  process.on('SIGINT', stop).on('SIGTERM', stop)
  process.stdout.on('error', stop)
  return controller.signal
}

function close(server: Server): void {
  server.close()
  server.closeAllConnections()
}

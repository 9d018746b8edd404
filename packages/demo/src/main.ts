import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { Answers } from './answers.js'
import { curlLines } from './curl.js'
import { type Route, routesUnder } from './routes.js'
import { view } from './screen.js'
import { stopSignal } from './stop-signal.js'
import { summarize } from './summary.js'
import { show } from './terminal/show.js'
import { sendTraffic } from './traffic.js'

const EXAMPLE = 'examples/express/server.ts'
const USAGE = `Usage: npm start -- [options]

Runs an Express server with rate limits, sends traffic to it over HTTP, and shows
what is allowed and denied.

  --serve        only serve, and print curl lines to try
  --port N       port to listen on (default: any that is free)
  --seconds N    seconds of traffic, 1 to 3600 (default: 12)
  --help         show this`

/** Its message is meant for the person at the terminal. */
class UsageError extends Error {}

process.exitCode = await main(process.argv.slice(2))

/** Returns the exit code: 0 when every promise held, 1 when one did not or the server could not listen, 2 for misuse. */
async function main(args: string[]): Promise<number> {
  try {
    const { help, serve, port, seconds } = read(args)
    if (help) console.log(USAGE)
    return help || (await run(serve, port, seconds, stopSignal())) ? 0 : 1
  } catch (error) {
    if (error instanceof UsageError) {
      console.error(`${error.message}\n\n${USAGE}`)
      return 2
    }
    if ((error as NodeJS.ErrnoException).syscall !== 'listen') throw error
    console.error(`Cannot listen: ${(error as Error).message}`)
    return 1
  }
}

/**
 * The options that were given, and the defaults of the others.
 * @throws {UsageError} for an unknown option or a value outside its bounds.
 */
function read(args: string[]) {
  const options = {
    help: { type: 'boolean', short: 'h', default: false },
    serve: { type: 'boolean', default: false },
    port: { type: 'string', default: '0' },
    seconds: { type: 'string', default: '12' },
  } as const
  try {
    const { help, serve, port, seconds } = parseArgs({ args, options }).values
    const numbers = { port: within('port', port, 0, 65_535), seconds: within('seconds', seconds, 1, 3600) }
    return { help, serve, ...numbers }
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/** The whole number that an option has. @throws {Error} if it is none from `least` to `most`. */
function within(name: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= least && value <= most) return value
  throw new Error(`--${name} must be a whole number from ${least} to ${most}, got '${text}'`)
}

/** Serves the example until `stop` aborts, or sends traffic to it for so many seconds. Returns whether every limit held. */
async function run(serve: boolean, port: number, seconds: number, stop: AbortSignal): Promise<boolean> {
  process.env['PORT'] = String(port)
  // The example listens as soon as its module is loaded.
  const { server, limits } = await import('@sluice/examples/express/server.js')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const routes = routesUnder(limits)
  try {
    return await (serve ? serveUntil(stop, origin, routes) : demonstrate(origin, routes, seconds, stop))
  } finally {
    close(server)
  }
}

/** Prints curl commands to try, and serves until `stop` aborts. Returns true: there is nothing to check. */
async function serveUntil(stop: AbortSignal, origin: string, routes: readonly Route[]): Promise<boolean> {
  console.log(`Until Ctrl-C. In another terminal:\n\n${curlLines(origin, routes)}`)
  if (!stop.aborted) await once(stop, 'abort')
  return true
}

/** Sends traffic to the server for `seconds` and shows the answers, then the summary. Returns whether every limit held. */
async function demonstrate(
  origin: string,
  routes: readonly Route[],
  seconds: number,
  stop: AbortSignal,
): Promise<boolean> {
  const answers = routes.flatMap((route) => route.callers.map((caller) => new Answers(route, caller)))
  const finish = show(view(`${seconds} seconds of traffic to ${EXAMPLE}`, routes, answers))
  await sendTraffic(origin, seconds, answers, stop)
  finish()
  const { text, held } = summarize(routes, answers)
  console.log(`\n${text}`)
  return held
}

/** Ends the server with all its connections. */
function close(server: Server): void {
  server.close()
  server.closeAllConnections()
}

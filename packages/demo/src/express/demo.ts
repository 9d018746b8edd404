import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { CannotRun, type Demo } from '../demo.js'
import { readOptions } from '../options.js'
import { show } from '../terminal/show.js'
import { Answers } from './answers.js'
import { curlLines } from './curl.js'
import { type Route, routesUnder } from './routes.js'
import { view } from './screen.js'
import { summarize } from './summary.js'
import { sendTraffic } from './traffic.js'

const EXAMPLE = 'examples/express/server.ts'

export const express: Demo = {
  usage: `Usage: npm start -- [options]

Runs an Express server with rate limits, sends traffic to it over HTTP, and shows
what is allowed and denied.

  --serve        only serve, and print curl lines to try
  --port N       port to listen on (default: any that is free)
  --seconds N    seconds of traffic, 1 to 3600 (default: 12)
  --help         show this`,

  async run(args, stop) {
    const { serve, port, seconds } = readOptions(args, {
      serve: 'flag',
      port: { least: 0, most: 65_535, default: 0 },
      seconds: { least: 1, most: 3600, default: 12 },
    })
    const { server, limits } = await startExample(port)
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const routes = routesUnder(limits)
    try {
      return await (serve ? serveUntil(stop, origin, routes) : demonstrate(origin, routes, seconds, stop))
    } finally {
      close(server)
    }
  },
}

/**
 * Starts the example's server on a port by loading its module, which listens at once. Returns what the module exports.
 * @throws {CannotRun} if it cannot listen on that port.
 */
async function startExample(port: number) {
  process.env['PORT'] = String(port)
  try {
    return await import('@sluice/examples/express/server.js')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall !== 'listen') throw error
    throw new CannotRun(`Cannot listen on port ${port}: ${(error as Error).message}`)
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

import { parseArgs } from 'node:util'

export interface Options {
  readonly serve: boolean
  /** 0 lets the system choose one that is free. */
  readonly port: number
  readonly seconds: number
}

export const USAGE = `Usage: npm start -- [options]

Runs an Express server with rate limits, sends traffic to it over HTTP, and shows
what is allowed and refused.

  --serve        only serve, and print curl lines to try
  --port N       port to listen on (default: any that is free)
  --seconds N    seconds of traffic, 1 to 3600 (default: 12)
  --help         show this`

/** 'help' where it was asked for. @throws {UsageError} for what is not understood. */
export function readOptions(args: string[]): Options | 'help' {
  const { serve, help, port, seconds } = parse(args)
  if (help) return 'help'
  return {
    serve: serve ?? false,
    port: wholeNumber('--port', port ?? '0', 0, 65_535),
    seconds: wholeNumber('--seconds', seconds ?? '12', 1, 3600),
  }
}

/** Its message is meant for the person at the terminal. */
export class UsageError extends Error {}

function parse(args: string[]): { serve?: boolean; help?: boolean; port?: string; seconds?: string } {
  try {
    return parseArgs({
      args,
      options: {
        serve: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
        port: { type: 'string' },
        seconds: { type: 'string' },
      },
    }).values
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

function wholeNumber(option: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= least && value <= most) return value
  throw new UsageError(`${option} must be a whole number from ${least} to ${most}, got '${text}'`)
}

import { parseArgs } from 'node:util'

export interface Options {
  readonly even: boolean
  readonly seconds: number
}

export const USAGE = `Usage: npm run fleet -- [options]

Four processes share one limit of 600 calls a minute in one Redis, and show who
gets what. Uses the Redis that REDIS_URL names, or else starts one of its own.

  --even         wait for turns, one each 100 ms, in place of being refused
  --seconds N    how long, 1 to 50 (default: 20)
  --help         show this`

/** 'help' where it was asked for. @throws {UsageError} for what is not understood. */
export function readOptions(args: string[]): Options | 'help' {
  const { even, help, seconds = '20' } = parse(args)
  if (help) return 'help'
  // Within one minute, so that there is one right total.
  if (!/^\d+$/.test(seconds) || Number(seconds) < 1 || Number(seconds) > 50) {
    throw new UsageError(`--seconds must be a whole number from 1 to 50, got '${seconds}'`)
  }
  return { even: even ?? false, seconds: Number(seconds) }
}

/** Its message is meant for the person at the terminal. */
export class UsageError extends Error {}

function parse(args: string[]): { even?: boolean; help?: boolean; seconds?: string } {
  try {
    return parseArgs({
      args,
      options: {
        even: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
        seconds: { type: 'string' },
      },
    }).values
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

import { parseArgs } from 'node:util'

export interface Options {
  /** Workers in processes of their own that share a real Redis, in place of one process with a memory store. */
  readonly redis: boolean
  readonly payments: number
}

export const USAGE = `Usage: node examples/payments/dist/main.js [options]

Four workers make payments at a provider that allows 200 calls in 10 s and 5 at
once, and that is out of order for a while in the middle.

  --redis         a process for each worker, and a real Redis started for them
  --payments N    payments in the batch, 4 to 100000 (default: 200)
  --help          show this`

/** 'help' where it was asked for. @throws {UsageError} for what is not understood. */
export function readOptions(args: string[]): Options | 'help' {
  const { redis, help, payments } = parse(args)
  if (help) return 'help'
  return { redis: redis ?? false, payments: wholeNumber('--payments', payments ?? '200', 4, 100_000) }
}

/** Its message is meant for the person at the terminal. */
export class UsageError extends Error {}

function parse(args: string[]): { redis?: boolean; help?: boolean; payments?: string } {
  try {
    return parseArgs({
      args,
      options: {
        redis: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
        payments: { type: 'string' },
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

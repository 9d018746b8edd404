import type { Outcome } from '@sluice/examples/fleet/worker.js'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Tally } from '../tally.js'
import { LIMIT } from './check.js'

/** A process of the fleet: the worker of examples/fleet, which reports the outcome of each of its calls. */
export class Member {
  readonly tally = new Tally()
  /** Resolves when the process has reported for the first time, or has ended. */
  readonly begun: Promise<unknown>
  /** Resolves when the process has ended and everything it reported is counted. */
  readonly gone: Promise<unknown>
  readonly #child: ChildProcess

  /** @param callsPerSecond 0: the process waits for its turns. */
  constructor(
    url: string,
    account: string,
    readonly callsPerSecond: number,
  ) {
    const settings = {
      REDIS_URL: url,
      ACCOUNT: account,
      CALLS_PER_MINUTE: String(LIMIT),
      CALLS_PER_SECOND: String(callsPerSecond),
    }
    // Detached, so that Ctrl-C in the terminal does not reach it: `end` stops it, and it reports its last call.
    this.#child = fork(WORKER, { env: { ...process.env, ...settings }, detached: true })
    this.gone = Promise.all([once(this.#child, 'exit'), once(this.#child, 'disconnect')])
    this.begun = Promise.race([once(this.#child, 'message'), this.gone])
    this.#child.on('message', ({ result, askedAt, answeredAt }: Outcome) =>
      this.tally.add(result, askedAt, answeredAt),
    )
  }

  /** The number of the process; 0 if it could not be started. */
  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Whether it ended without an error. A process that is stopped while it starts ends by the signal itself. */
  get endedWell(): boolean {
    return this.#child.exitCode === 0 || this.#child.signalCode === 'SIGTERM'
  }

  /** Asks the process to end, and resolves when it has; one that hangs is killed after 10 s. */
  async end(): Promise<void> {
    this.#child.kill('SIGTERM')
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), PATIENCE_MS)
    await this.gone
    clearTimeout(timer)
  }
}

const WORKER = fileURLToPath(import.meta.resolve('@sluice/examples/fleet/worker.js'))
const PATIENCE_MS = 10_000

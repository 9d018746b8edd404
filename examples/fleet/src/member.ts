import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { emptyTally, type Tally } from './tally.js'
import type { Job } from './worker.js'

/** A process of the fleet, as the one that shows it sees it. */
export class Member {
  /** As of its latest report. */
  tally: Tally = emptyTally()
  readonly #child: ChildProcess
  readonly #ready: Promise<void>
  readonly #gone: Promise<unknown>
  /** One a tenth of a second. */
  #reports: Tally[] = []

  constructor(readonly job: Job) {
    // Out of the terminal's reach: at Ctrl-C it is told to end, and reports what it got. It ends when this process does.
    this.#child = fork(WORKER, [JSON.stringify(job)], { detached: true })
    this.#gone = Promise.all([once(this.#child, 'exit'), once(this.#child, 'disconnect')])
    this.#ready = new Promise((resolve, reject) => {
      this.#child.on('message', (message: 'ready' | Tally) => {
        if (message === 'ready') resolve()
        else this.#hear(message)
      })
      this.#child.once('exit', () => reject(new Error(`process ${this.pid} ended before it was ready`)))
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Whether it ended by itself and without an error. */
  get endedWell(): boolean {
    return this.#child.exitCode === 0
  }

  /** Resolves when it has reached Redis. */
  ready(): Promise<void> {
    return this.#ready
  }

  begin(): void {
    this.#child.send('begin')
  }

  /** Resolves when it has reported for the last time and is gone; one that hangs is killed. */
  async end(): Promise<void> {
    if (this.#child.connected) this.#child.send('end')
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), PATIENCE_MS)
    await this.#gone
    clearTimeout(timer)
  }

  lastSecond(): { readonly allowed: number; readonly refused: number } {
    const { allowed, refused } = this.#reports[0] ?? emptyTally()
    return { allowed: this.tally.allowed - allowed, refused: this.tally.refused - refused }
  }

  #hear(tally: Tally): void {
    this.tally = tally
    this.#reports = [...this.#reports, tally].slice(-10)
  }
}

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url))
const PATIENCE_MS = 10_000

import type { Limiter } from '@sluice/core'
import type { Fault } from './plan.js'
import type { Process } from './process.js'
import type { World } from './world.js'

/** Turns a second of the fleet, and what the provider allows: a reserve for calls that a busy process makes late. */
const TURNS = 12
export const EVENLY = { limit: TURNS, window: '1s', burst: 1 } as const
export const ALLOWED = TURNS + 1
/** Attempts of a call at most. */
export const ATTEMPTS = 3
const SECOND_US = 1_000_000

/** An attempt that reached the provider. */
export interface Arrival {
  readonly at: number
  readonly process: string
  readonly call: number
  readonly attempt: number
  /** What was answered, and what wait that states; undefined where nothing was. */
  status: number | undefined
  waitMs: number | undefined
  heardAt: number | undefined
  /** When that was heard, or its caller has hung up. */
  endedAt: number
  /** How late it was after its turn, where it was told. */
  lateMs: number | undefined
}

/** The other side: it counts the calls that reach it, and refuses those beyond what it allows. */
export class Provider {
  readonly arrivals: Arrival[] = []
  readonly #until = { lowered: 0, overloaded: 0, silent: 0 }
  #states = true

  /** `latency`: microseconds until it has answered. */
  constructor(
    readonly world: World,
    readonly latency: number,
  ) {}

  begin({ fault, lasts, choice }: Fault): void {
    const until = this.world.now + lasts
    if (fault === 'provider overloaded') this.#until.overloaded = until
    else if (fault === 'provider silent') this.#until.silent = until
    else this.#until.lowered = until
    this.#states = choice
  }

  /** The `fetch` of a process, whose URLs name the call. */
  fetchOf(process: Process): typeof fetch {
    return (input, init) =>
      new Promise((resolve, reject) => {
        const call = Number(new URL(input).searchParams.get('call'))
        const { status, waitMs } = this.#answer()
        const attempt = 1 + this.arrivals.filter((each) => each.call === call).length
        const heard = { heardAt: undefined, endedAt: Infinity, lateMs: undefined }
        const arrival: Arrival = {
          at: this.world.now,
          process: process.name,
          call,
          attempt,
          status,
          waitMs,
          ...heard,
        }
        this.arrivals.push(arrival)
        this.world.trace(`${process.name} ${call} sent, attempt ${attempt}: ${status} ${waitMs}`)
        const end = (): number => (arrival.endedAt = Math.min(arrival.endedAt, this.world.now))
        init?.signal?.addEventListener('abort', () => {
          end()
          reject(init.signal!.reason as Error)
        })
        if (status === undefined) return
        this.world.after(this.latency, process, () => {
          if (arrival.endedAt < Infinity) return
          arrival.heardAt = this.world.now
          end()
          const headers = waitMs === undefined ? {} : { 'retry-after': String(waitMs / 1000) }
          resolve(new Response(null, { status, headers }))
        })
      })
  }

  #answer(): { readonly status: number | undefined; readonly waitMs: number | undefined } {
    const { now } = this.world
    const { lowered, overloaded, silent } = this.#until
    const isLowered = now < lowered
    const recent = this.arrivals.filter(({ at, status }) => status === 200 && at > now - SECOND_US)
    const waitMs = isLowered && !this.#states ? undefined : 1000
    if (now < silent) return { status: undefined, waitMs: undefined }
    // Half of them say that it may be called again at once.
    if (now < overloaded) return { status: 503, waitMs: this.#states ? undefined : 0 }
    if (recent.length >= (isLowered ? 1 : ALLOWED)) return { status: 429, waitMs }
    return { status: 200, waitMs: undefined }
  }
}

/** What a function of a queue throws where it was refused. */
export class Refused extends Error {
  constructor(readonly response: Response) {
    super(`${response.status}`)
  }

  get waitMs(): number {
    return Number(this.response.headers.get('retry-after') ?? 0) * 1000
  }
}

/** How a process calls the provider: by `limitFetch`, and by a queue of functions, which share the turns of a limiter. */
export function clientOf({ core }: Process, limiter: Limiter, fetch: typeof globalThis.fetch) {
  const key = 'provider'
  const limited = core.limitFetch(fetch, {
    limiter,
    key,
    maxWait: '20s',
    priority: ({ url }) => priorityOf(url),
  })
  const queue = core.createQueue({
    limiter,
    key,
    maxWait: '20s',
    retry: (error, attempt) => attempt < ATTEMPTS && error instanceof Refused && 0,
    isRefusal: ({ error }) => error instanceof Refused,
    pauseOf: ({ error }) => (error instanceof Refused ? error.waitMs : 0),
  })
  return { limited, queue }
}

/** Each third call is urgent. */
export function isUrgent(id: number): boolean {
  return id % 3 === 0
}

/** Half of all calls are made by `limitFetch`. */
export function isFetched(id: number): boolean {
  return id % 2 === 0
}

function priorityOf(url: URL): number {
  return isUrgent(Number(url.searchParams.get('call'))) ? 1 : 0
}

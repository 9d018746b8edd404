import { isResendable, untilEnd } from './body.js'
import type { Call, Reply } from './call.js'
import { remember } from './decision-of.js'
import { Gate } from './gate.js'
import type { Turn } from './line.js'
import type { OutboundOptions } from './options.js'

type Fetch = typeof globalThis.fetch

/**
 * A `fetch` whose calls wait for their turn, and that obeys what the other side answers. It rejects with
 * `RateLimitExceededError` where there is no turn within `maxWait`, and else as the fetch does that it is made from.
 * With a semaphore, a call is under way until its body has been read.
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function limitFetch(fetch: Fetch, options: OutboundOptions): Fetch {
  const gate = new Gate(options)
  return async function limitedFetch(input, init) {
    const request = typeof input === 'object' && 'headers' in input ? input : undefined
    const body = init?.body ?? request?.body
    const signal = init?.signal ?? request?.signal
    const visit = gate.visit(callOf(input, request, init), isResendable(body), signal)
    for (;;) {
      const turn = await visit.turn()
      const response = await send(fetch, input, init, turn)
      if (!visit.heed(replyOf(response))) return delivered(response, turn, options.semaphore !== undefined)
      turn.release()
      await response.body?.cancel().catch(() => {})
    }
  }
}

type Input = Parameters<Fetch>[0]
type Init = Parameters<Fetch>[1]

async function send(fetch: Fetch, input: Input, init: Init, turn: Turn): Promise<Response> {
  try {
    return await fetch(input, init)
  } catch (error) {
    turn.release()
    throw error
  }
}

function delivered(response: Response, turn: Turn, counted: boolean): Response {
  const whole = counted ? untilEnd(response, turn.release) : response
  remember(whole, turn.decision, response)
  return whole
}

function callOf(input: Input, request: Request | undefined, init: Init): Call {
  return {
    url: new URL(request ? request.url : input),
    method: (init?.method ?? request?.method ?? 'GET').toUpperCase(),
    header: (name) => new Headers(init?.headers ?? request?.headers).get(name) ?? undefined,
  }
}

function replyOf({ status, headers }: Response): Reply {
  return { status, header: (name) => headers.get(name) ?? undefined }
}

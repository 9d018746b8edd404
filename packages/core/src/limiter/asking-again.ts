import { type Answer, isDenied, type MaybePromise } from '../stores/store.js'
import { sleep } from '../values/abort.js'

/**
 * Asks for units of a limiter that reserves, again and again until a call is allowed, or denied for longer than `maxWait`
 * microseconds. While units are reserved it asks each second, as they may be settled long before their end; otherwise at the instant
 * at which the cost passes. Returns the last answer and the microseconds of the wait.
 */
export async function askAgain(
  ask: () => MaybePromise<Answer>,
  maxWait: number,
  now: () => number,
  signal: AbortSignal | undefined,
): Promise<{ readonly answer: Answer; readonly waited: number }> {
  const start = now()
  for (;;) {
    signal?.throwIfAborted()
    const answer = await ask()
    const waited = now() - start
    const { reason, at, nextEnd } = answer
    const isFinal = !isDenied(answer) || reason === 'cost' || reason === 'blocked' || waited >= maxWait
    const wait = nextEnd === undefined ? at - answer.now : SECOND
    if (isFinal || (nextEnd === undefined && wait > maxWait - waited)) return { answer, waited }
    await sleep(Math.ceil(Math.min(wait, maxWait - waited) / 1000), signal)
  }
}

const SECOND = 1_000_000

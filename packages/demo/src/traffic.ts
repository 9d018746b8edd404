import { setTimeout as sleep } from 'node:timers/promises'
import type { Answer, Answers } from './answers.js'
import type { Route } from './routes.js'

/** Longest wait for an answer: a server that hangs fails the check and does not stop the demo from ending. */
const PATIENCE_MS = 5000

/**
 * Lets every caller send at its rate for `seconds`, over HTTP, and counts the answers. Resolves when all are in, or
 * as soon as `signal` aborts.
 */
export async function sendTraffic(
  origin: string,
  seconds: number,
  answers: readonly Answers[],
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(answers.map((own) => sendAs(origin, seconds, own, signal)))
}

/**
 * Sends the requests of one caller at its steady rate for `seconds`, each after the answer to the one before, and adds the answers
 * to `answers`. Ends early, without an error, when `signal` aborts.
 */
async function sendAs(origin: string, seconds: number, answers: Answers, signal: AbortSignal): Promise<void> {
  const { route, caller } = answers
  const url = `${origin}${route.path}${route.query ?? ''}`
  const startedAt = performance.now()
  const calls = Math.ceil(seconds * caller.callsPerSecond)
  try {
    for (let call = 0; call < calls; call++) {
      const dueAt = startedAt + (call * 1000) / caller.callsPerSecond
      await sleep(Math.max(0, dueAt - performance.now()), undefined, { signal })
      const sentAt = performance.now()
      const answer = await ask(url, route, {
        method: route.method,
        headers: caller.headers ?? {},
        signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]),
      })
      if (signal.aborted) return
      answers.add(answer, sentAt, performance.now())
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** Sends one request and reads the answer. One that is not answered counts as failed. */
async function ask(url: string, route: Route, request: RequestInit): Promise<Answer> {
  try {
    const response = await fetch(url, request)
    return answerOf(response, await response.text(), route)
  } catch {
    return { verdict: 'failed', remaining: undefined, retryAfter: undefined, deniedBy: [] }
  }
}

/**
 * The verdict and the limit's headers of a response. A 429 without Retry-After counts as failed: it does not say when to come back,
 * which is promised.
 */
function answerOf({ ok, status, headers }: Response, body: string, route: Route): Answer {
  const retryAfter = numberIn(headers.get('retry-after'), /^(\d+)$/)
  const denied = status === 429 && retryAfter !== undefined
  return {
    verdict: ok ? 'allowed' : denied ? 'denied' : 'failed',
    remaining:
      numberIn(headers.get('x-ratelimit-remaining'), /^(\d+)$/) ??
      numberIn(headers.get('ratelimit'), /;r=(\d+)/),
    retryAfter,
    deniedBy: denied && route.policies.length > 1 ? violatedPolicies(body, route) : [],
  }
}

/**
 * The names of the route's policies that denied a request, from the problem details in its body. These name a policy by its limiter and
 * itself, as in `login-1-per-1s`.
 */
function violatedPolicies(problem: string, { policies }: Route): readonly string[] {
  const { 'violated-policies': violated } = JSON.parse(problem) as { 'violated-policies': readonly string[] }
  const names = policies.map(({ name }) => name)
  return names.filter((name) => violated.some((full) => full.endsWith(`-${name}`)))
}

/** The number that the pattern's first group finds in a header; undefined where there is none. */
function numberIn(text: string | null, pattern: RegExp): number | undefined {
  const match = pattern.exec(text ?? '')
  return match ? Number(match[1]) : undefined
}

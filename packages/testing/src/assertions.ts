import type { Decision } from '@sluice/core'

/*
 * Assertions about answers, for any test runner: they throw an AssertionError, and return nothing. An answer is a decision, a
 * response of fetch, of supertest, of light-my-request (`inject`) or of Node's own client.
 */

/** A response in any of the forms in which test tools have them. */
export interface AnyResponse {
  readonly status?: number
  readonly statusCode?: number | undefined
  readonly headers: Headers | Readonly<Record<string, unknown>>
}

/** The part of the standard `Headers` that is read. */
interface Headers {
  get(name: string): string | null
}

export interface ExpectedLimit {
  /** `X-RateLimit-Limit`, or `decision.limit`. */
  readonly limit?: number
  /** `X-RateLimit-Remaining`, or `decision.remaining`. */
  readonly remaining?: number
}

export interface ExpectedDenial extends ExpectedLimit {
  /** The wait in milliseconds. A response has whole seconds, rounded up. */
  readonly retryAfterMs?: number
  /**
   * The status of the response.
   * @default 429
   */
  readonly status?: number
}

/**
 * Asserts that a call was allowed, or that a request was answered with any status but 429 and 503. Fields of `expected` (the
 * limit, the units that remain) are compared if they are given.
 * @throws {AssertionError} with both sides, for the test runner to show.
 * @example
 * await supertest(app).get('/').expect((response) => assertAllowed(response, { remaining: 9 }))
 */
export function assertAllowed(answer: Decision | AnyResponse, expected: ExpectedLimit = {}): void {
  const seen = readAnswer(answer)
  if (!seen.allowed) throw failure(assertAllowed, 'was denied', { ...seen, allowed: true }, seen)
  compare(assertAllowed, seen, expected)
}

/**
 * Asserts that a call was denied, or that a request was answered with `expected.status`, 429 if none is given; and how long the
 * caller is to wait. The wait is given in milliseconds. A response states it in whole seconds, so for one it is rounded up first,
 * to 1 second at least.
 * @throws {AssertionError} with both sides, for the test runner to show.
 * @example
 * assertDenied(await fetch(url), { retryAfterMs: 60_000 })
 */
export function assertDenied(answer: Decision | AnyResponse, expected: ExpectedDenial = {}): void {
  const seen = readAnswer(answer)
  const { status = seen.status === undefined ? undefined : 429, retryAfterMs, ...limit } = expected
  // Any status may be that of a denial, which `deny` and `onDenied` of an adapter choose.
  const hasStatusOfDenial = seen.status !== undefined && seen.status === status
  if (seen.allowed && !hasStatusOfDenial)
    throw failure(assertDenied, 'was allowed', { ...seen, allowed: false, status }, seen)
  const inSeconds = seen.status !== undefined && retryAfterMs !== undefined
  const wait = inSeconds ? Math.max(1, Math.ceil(retryAfterMs / 1000)) * 1000 : retryAfterMs
  compare(assertDenied, seen, { ...limit, status, retryAfterMs: wait })
}

type Seen = ReturnType<typeof readAnswer>

/**
 * Returns the fields of an answer that assertions compare. A decision has them by name, and no status. A response has them in its
 * status and headers: 429 and 503 are denials, and Retry-After is turned from seconds into milliseconds. A field is undefined
 * where its header is missing. Test tools keep headers either in an object with `get` or in a plain one.
 */
function readAnswer(answer: Decision | AnyResponse) {
  if ('allowed' in answer) {
    const { allowed, limit, remaining, retryAfterMs } = answer
    return { allowed, status: undefined, limit, remaining, retryAfterMs }
  }
  /** Returns the number in a header; undefined if it is missing. Those of fetch have a `get`, other tools use a plain object. */
  const header = (name: string): number | undefined => {
    const { headers } = answer
    const value =
      typeof headers.get === 'function' ? (headers as Headers).get(name) : (headers as object)[name as never]
    return value === null || value === undefined ? undefined : Number(value)
  }
  const status = answer.statusCode ?? answer.status
  const waitSeconds = header('retry-after')
  return {
    allowed: status !== 429 && status !== 503,
    status,
    limit: header('x-ratelimit-limit'),
    remaining: header('x-ratelimit-remaining'),
    retryAfterMs: waitSeconds === undefined ? undefined : waitSeconds * 1000,
  }
}

/**
 * Compares the fields of an answer, `seen`, with those that are expected; an expected field that is undefined is not compared.
 * `assertion` is the function that the test called, for the stack of the error.
 * @throws {AssertionError} that names every field that differs.
 */
function compare(assertion: Assertion, seen: Seen, expected: Partial<Record<keyof Seen, unknown>>): void {
  const names = Object.keys(expected) as (keyof Seen)[]
  const wrong = names.filter((name) => expected[name] !== undefined && expected[name] !== seen[name])
  if (wrong.length === 0) return
  const what = wrong.map((name) => `${name} is ${seen[name]} and not ${String(expected[name])}`)
  throw failure(assertion, what.join(', '), { ...seen, ...expected }, seen)
}

type Assertion = typeof assertAllowed | typeof assertDenied

/**
 * Makes the error of a failed assertion: its message, and the expected and the actual fields, which test runners show as a
 * difference. `assertion` is the function that the test called: frames from it upwards are left out, so the stack begins at the
 * line of the test.
 */
function failure(assertion: Assertion, what: string, expected: unknown, actual: Seen): AssertionError {
  const error = new AssertionError(`the answer ${what}`, expected, actual)
  Error.captureStackTrace(error, assertion)
  return error
}

/** Not Node's class: in Jest that is no `Error` to supertest, which would take the failure for a success. */
class AssertionError extends Error {
  override readonly name = 'AssertionError'
  readonly code = 'ERR_ASSERTION'

  /** Makes the error of a failed assertion, which test runners show as a difference of two values. */
  constructor(
    message: string,
    readonly expected: unknown,
    readonly actual: unknown,
  ) {
    super(message)
  }
}

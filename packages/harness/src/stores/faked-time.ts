/** The timers and clocks of Node, by the names that Jest has for them. */
const TIMES = [
  'Date',
  'hrtime',
  'nextTick',
  'performance',
  'queueMicrotask',
  'setImmediate',
  'clearImmediate',
  'setInterval',
  'clearInterval',
  'setTimeout',
  'clearTimeout',
] as const

/**
 * Has Jest fake these alone, because clients and servers of stores need all others; by default intervals, at which processes post.
 * `now` is what a faked `Date` begins at, in milliseconds since the epoch.
 */
export function fakeOnly(
  names: readonly (typeof TIMES)[number][] = ['setInterval', 'clearInterval'],
  now?: number,
): void {
  const doNotFake = TIMES.filter((name) => !names.includes(name))
  jest.useFakeTimers({ doNotFake, ...(now !== undefined && { now }) })
}

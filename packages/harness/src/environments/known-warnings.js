// Warnings that tests may cause and need not expect: of Node, of other libraries, and one of ours that no test can place. Any other
// fails the test in which it is written.

/**
 * A known warning. `code` and `frames` are compared if they are given, and `message` must match.
 * @typedef {{ name: string, code?: string, message: RegExp, frames?: RegExp, reason: string }} Known
 */

/** @type {readonly Known[]} */
const KNOWN = [
  {
    name: 'DeprecationWarning',
    code: 'JEST-01',
    message: /^'(?:test|all|current|Symbol\.species)' property was accessed on \[(?:Object|Function)\] after/,
    reason:
      'the sweep of a memory store reads the clock until the store is collected, and zone.js its Promise',
  },
  {
    name: 'DeprecationWarning',
    code: 'https://github.com/node-fetch/node-fetch/issues/1167',
    message: /^form-data doesn't follow the spec/,
    reason: 'a test sends a form of that package with node-fetch on purpose',
  },
  {
    name: 'DeprecationError',
    message: /^handlers that are Promise-like are deprecated/,
    reason: 'the router of Express, under the global Promises of others that the kit tries',
  },
  {
    name: 'SluiceWarning',
    code: 'CLOCK_FAKED',
    message: /^limits do not follow fake timers/,
    frames: /at (?:Timeout\S*|sweep) .*stores\/memory\/index\.ts/,
    reason:
      'the sweep of a store that an earlier test made may read its clock while a later one fakes the time, or be called by its timers',
  },
]

/**
 * Lines of the console that tests may cause: zone.js reports a rejection as unhandled at the end of a microtask, though it is handled
 * a turn later.
 */
const KNOWN_LINE = /at Object\.api\.onUnhandledError \(.*zone-node/

/** Whether a line of the console is known, by its text. @param {string} text */
export const isKnownLine = (text) => KNOWN_LINE.test(text)

/** Whether a warning is in the list. @param {Error & { code?: unknown }} warning */
export function isKnown({ name, code, message, stack = '' }) {
  return KNOWN.some(
    (known) =>
      known.name === name &&
      (known.code === undefined || known.code === code) &&
      known.message.test(message) &&
      (known.frames?.test(stack) ?? true),
  )
}

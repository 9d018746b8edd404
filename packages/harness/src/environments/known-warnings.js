// Warnings of Node and of other libraries that tests may cause. Any other fails the test in which it is written.

/**
 * A known warning. `code` is compared if it is given, and `message` must match.
 * @typedef {{ name: string, code?: string, message: RegExp, reason: string }} Known
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
]

/** Whether a warning is in the list. @param {Error & { code?: unknown }} warning */
export function isKnown({ name, code, message }) {
  return KNOWN.some(
    (known) =>
      known.name === name && (known.code === undefined || known.code === code) && known.message.test(message),
  )
}

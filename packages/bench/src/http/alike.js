import { HAND_WRITTEN } from './modes.js'

const NEEDED = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']

/**
 * Those whose cost is compared must do the same work: the same headers, and the same text.
 * @param {string} where
 * @param {string} handWritten The names of the headers in lower case, a line each, and the text without its numbers.
 * @param {string} sluice
 */
export function checkAlike(where, handWritten, sluice) {
  const headers = sluice.split('\n')
  const missing = NEEDED.filter((header) => !headers.includes(header))
  if (missing.length > 0) throw new Error(`${where}: no ${missing.join(', ')}`)
  if (handWritten !== sluice)
    throw new Error(`${where}: ${HAND_WRITTEN} answers\n${handWritten}\nand Sluice\n${sluice}`)
}

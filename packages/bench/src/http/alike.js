import { HAND_WRITTEN } from './modes.js'

/**
 * Those whose cost is compared must do the same work: the same headers, and the same text.
 * @param {string} where
 * @param {string} handWritten The names of the headers in lower case, a line each, and the text without its numbers.
 * @param {string} sluice
 */
export function checkAlike(where, handWritten, sluice) {
  if (handWritten !== sluice)
    throw new Error(`${where}: ${HAND_WRITTEN} answers\n${handWritten}\nand Sluice\n${sluice}`)
}

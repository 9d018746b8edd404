/** The cells of a debt: units x ticks, as it stood at the instant AT; and the largest limit that has drained it. */
export const DEBT = 0
export const AT = 1
export const FASTEST = 2

/**
 * With slots, behind those: the instant from which on charges are counted in slots; the debt, in units x ticks, at which the
 * oldest slot began; the number of the newest slot; then the units of each slot, by its number modulo their count.
 */
export const BEGUN = 3
export const BEFORE = 4
export const NEWEST = 5
export const UNITS = 6

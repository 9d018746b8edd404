// Who is measured of each framework, and at which limit the other servers deny.

export const BARE = 'bare'
export const HAND_WRITTEN = 'hand-written'
export const SLUICE = 'Sluice'

/** Used up by the first request. @type {import('../contender.js').Limit} */
export const DENYING = { limit: 1, windowMs: 86_400_000 }

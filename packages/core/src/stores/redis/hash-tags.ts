/*
 * A store with groups divides its keys into n of them and puts a hash tag into each key, so that the keys of a group lie in
 * one slot of a Cluster, and their calls in one script call. The tags are `{n.number}`: as n is part of every key, another n is
 * another state. The group of a caller follows from its key alone, so that `block` and `reset` find all of its lists.
 */

/**
 * Makes the function that returns the hash tag of a caller's key, `{n.number}:`, in a store whose keys are divided into n groups.
 * Redis Cluster puts keys of one tag into one of its 16,384 slots. The slots are divided into n equal ranges, and numbers are
 * tried until each range has a tag that lies in it, so that the groups spread evenly over the servers. The range of a caller's
 * key decides its group.
 */
export function hashTags(groups: number): (callerKey: string) => string {
  const groupOf = (text: string): number => Math.floor((slotOf(text) * groups) / SLOTS)
  const tags = new Map<number, string>()
  for (let number = 0; tags.size < groups; number++) {
    const tag = `${groups}.${number}`
    const group = groupOf(tag)
    if (!tags.has(group)) tags.set(group, `{${tag}}:`)
  }
  return (callerKey) => tags.get(groupOf(callerKey))!
}

const SLOTS = 16_384

/**
 * Returns the slot of a Redis Cluster that a text lies in: its CRC16 (XMODEM) modulo 16,384. Exact for ASCII, of which tags
 * consist; of other UTF-16 units, which only choose a group, both bytes count.
 */
function slotOf(text: string): number {
  let crc = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit > 0xff) crc = next(crc, unit >> 8)
    crc = next(crc, unit & 0xff)
  }
  return crc % SLOTS
}

/** Returns the CRC16 of a text and one more byte, from the CRC16 of the text alone. */
function next(crc: number, byte: number): number {
  return ((crc << 8) & 0xffff) ^ REMAINDERS[(crc >> 8) ^ byte]!
}

/** The remainder of each byte. */
const REMAINDERS = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})

/*
 * A state is a list of whole numbers, of 8 bytes each as `keyspaceOver` gives it. In a row each number takes one byte for every
 * seven of its bits, the lowest first (LEB128): most are small, so that the state of a gcra takes half of the space.
 */

/**
 * Returns the bytes of a state (a list of whole numbers of 8 bytes each) as a row keeps them: each number takes a byte for every
 * seven of its bits, the lowest first. All bytes of a number but the last are 128 or more.
 */
export function packed(state: Uint8Array): Buffer {
  const bytes: number[] = []
  for (const number of numbersOf(state)) {
    let rest = number
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push(128 + (rest % 128))
    bytes.push(rest)
  }
  return Buffer.from(bytes)
}

/**
 * Returns the state that the bytes of a row stand for: a list of whole numbers, each of which has a byte for every seven of its
 * bits, the lowest first. `unit` is what a bit of the next byte is worth. Bytes that end within a number become a state of one
 * byte, which no keyspace accepts.
 */
export function unpacked(bytes: Uint8Array): Uint8Array {
  const numbers: number[] = []
  let number = 0
  let unit = 1
  for (const byte of bytes) {
    number += (byte % 128) * unit
    unit *= 128
    if (byte >= 128) continue
    numbers.push(number)
    number = 0
    unit = 1
  }
  return unit === 1 ? stateOf(numbers) : new Uint8Array(1)
}

/**
 * Returns these numbers as a state, the bytes in which a store hands on all that it keeps for one key: each number is a 64-bit
 * float, its lowest byte first. `packed` makes them shorter for a row.
 */
export function stateOf(numbers: readonly number[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(8 * numbers.length))
  for (let i = 0; i < numbers.length; i++) view.setFloat64(8 * i, numbers[i]!, true)
  return new Uint8Array(view.buffer)
}

/**
 * Returns the numbers of a state, the bytes that are kept for one key: each number is a 64-bit float, its lowest byte first.
 * Undefined (nothing is kept) has no numbers. Neither have bytes that are not a multiple of 8, as such a state is damaged.
 */
export function numbersOf(state: Uint8Array | undefined): readonly number[] {
  if (!state || state.byteLength % 8 !== 0) return []
  const view = new DataView(state.buffer, state.byteOffset, state.byteLength)
  const numbers: number[] = []
  for (let at = 0; at < view.byteLength; at += 8) numbers.push(view.getFloat64(at, true))
  return numbers
}

/*
 * SHA-256 (FIPS 180-4). Keys are hashed synchronously in Node, browsers and workers. WebCrypto is asynchronous, and a package
 * for this one function was larger than all of this one. See docs/decisions/0011.
 */

/**
 * The SHA-256 digest of `bytes`, as 64 lower case hex digits. It is computed here because keys are hashed synchronously on every
 * runtime: WebCrypto is asynchronous, and browsers have no `node:crypto`. Each block of 64 bytes fills the first 16 words of a
 * schedule, which is extended to 64 words and mixed into the hash of 8 words. 2^32 is added to a word so that its leading zeros
 * are written too.
 */
export function sha256(bytes: Uint8Array): string {
  const message = padded(bytes)
  const view = new DataView(message.buffer)
  const hash = new Int32Array(INITIAL)
  for (let offset = 0; offset < message.length; offset += 64) {
    for (let i = 0; i < 16; i++) SCHEDULE[i] = view.getInt32(offset + 4 * i)
    extend(SCHEDULE)
    compress(hash, SCHEDULE)
  }
  let hex = ''
  for (const word of hash) hex += (2 ** 32 + (word >>> 0)).toString(16).slice(1)
  return hex
}

/**
 * The message padded to whole blocks of 64 bytes, as SHA-256 requires: behind it a bit of 1, then zeros, and in the last 8 bytes
 * its length in bits, as two words: the upper one is bytes * 8 / 2^32.
 */
function padded(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64)
  message.set(bytes)
  message[bytes.length] = 0x80
  const view = new DataView(message.buffer)
  view.setUint32(message.length - 8, Math.floor(bytes.length / 2 ** 29))
  view.setUint32(message.length - 4, bytes.length << 3)
  return message
}

/**
 * Fills words 16 to 63 of a block's message schedule `w` from the first 16, by the formula of FIPS 180-4, 6.2.2, step 1: each
 * word mixes four earlier ones. Sums wrap at 32 bits, as the words of an Int32Array do.
 */
function extend(w: Int32Array): void {
  for (let i = 16; i < 64; i++) {
    const a = w[i - 15]!
    const b = w[i - 2]!
    const s0 = rotated(a, 7) ^ rotated(a, 18) ^ (a >>> 3)
    const s1 = rotated(b, 17) ^ rotated(b, 19) ^ (b >>> 10)
    w[i] = w[i - 16]! + s0 + w[i - 7]! + s1
  }
}

/**
 * Mixes the message schedule `w` of one block into the 8 words of `hash`, in 64 rounds with their constants ROUND. The names and
 * formulas are those of FIPS 180-4, 6.2.2, steps 2 to 4.
 */
function compress(hash: Int32Array, w: Int32Array): void {
  let a = hash[0]!
  let b = hash[1]!
  let c = hash[2]!
  let d = hash[3]!
  let e = hash[4]!
  let f = hash[5]!
  let g = hash[6]!
  let h = hash[7]!
  for (let i = 0; i < 64; i++) {
    const s1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUND[i]! + w[i]!) | 0
    const s0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + t1) | 0
    d = c
    c = b
    b = a
    a = (t1 + t2) | 0
  }
  const mixed = [a, b, c, d, e, f, g, h]
  for (let i = 0; i < 8; i++) hash[i]! += mixed[i]!
}

/** A word of 32 bits, rotated to the right by `bits`. */
function rotated(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits))
}

const PRIMES = firstPrimes(64)
/** The first 32 bits behind the point of the square roots of the first 8 primes, and of the cube roots of the first 64. */
const INITIAL = PRIMES.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)))
const ROUND = Int32Array.from(PRIMES, (prime) => fraction(Math.cbrt(prime)))

/** Filled anew for each block: nothing is hashed while another message is. */
const SCHEDULE = new Int32Array(64)

/** The first 32 bits of a number's fractional part, as a signed integer. */
function fraction(root: number): number {
  return ((root - Math.floor(root)) * 2 ** 32) | 0
}

/** The first `count` prime numbers, each found by dividing by all smaller ones: SHA-256 takes its constants from their roots. */
function firstPrimes(count: number): number[] {
  const primes: number[] = []
  for (let n = 2; primes.length < count; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n)
  return primes
}

// Access logs in the combined format, always the same for the same numbers.

const START = Date.UTC(2025, 9, 10, 9)
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const AGENT = 'Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0'

/**
 * Two hours of a shop, as pieces of text: people who look at a page now and then, each with what it loads; an office behind one
 * address; a monitor; and two programs that read the shop from end to end, one of which is limited.
 */
export function* shopLog() {
  const random = randomNumbers(7)
  /** @type {[second: number, address: string, path: string, status: number][]} */
  const calls = []
  for (let person = 0; person < 5000; person++) {
    const address =
      person % 5 === 0 ? `2001:db8:${person.toString(16)}::1` : `198.51.${person % 100}.${person % 251}`
    let second = Math.floor(random() * 6000)
    for (let pages = 1 + Math.floor(random() ** 3 * 9); pages > 0; pages--) {
      for (let part = 0; part < 3; part++)
        calls.push([second + (part > 0 ? 1 : 0), address, `/items/${part}`, 200])
      second += 3 + Math.floor(random() * 60)
    }
  }
  for (let i = 0; i < 700; i++) calls.push([Math.floor(random() * 7200), '192.0.2.80', '/items/9', 200])
  for (let i = 0; i < 720; i++) calls.push([i * 10, '192.0.2.10', '/health', 200])
  for (let i = 0; i < 2400; i++)
    calls.push([1200 + Math.floor(i / 2), '203.0.113.7', `/items?page=${i}`, 200])
  for (let i = 0; i < 900; i++)
    calls.push([3000 + Math.floor(i / 3), '203.0.113.99', '/search', i % 3 === 0 ? 429 : 200])
  calls.sort(([one], [other]) => one - other)
  for (const [second, address, path, status] of calls) yield line(second, address, path, status)
}

/**
 * Lines of a day by as many callers, the first calls of whom come one after the other, in pieces of about a megabyte.
 * @param {number} lines
 * @param {number} callers
 */
export function* longLog(lines, callers) {
  const random = randomNumbers(42)
  let piece = ''
  for (let i = 0; i < lines; i++) {
    const draw = random()
    const caller =
      draw < 0.02 ? Math.floor(random() * 3) : i < callers ? i : Math.floor(random() ** 1.5 * callers)
    const address = `10.${(caller >> 16) & 255}.${(caller >> 8) & 255}.${caller & 255}`
    piece += line(
      Math.floor((i / lines) * 86_400),
      address,
      `/api/items/${i % 97}?page=${i % 7}`,
      random() < 0.01 ? 429 : 200,
    )
    if (piece.length < 2 ** 20) continue
    yield piece
    piece = ''
  }
  yield piece
}

/** @type {{ second: number, text: string }} */
let latest = { second: -1, text: '' }

/**
 * @param {number} second
 * @param {string} address
 * @param {string} path
 * @param {number} status
 */
function line(second, address, path, status) {
  if (latest.second !== second) latest = { second, text: clfTime(second) }
  return `${address} - - [${latest.text}] "GET ${path} HTTP/1.1" ${status} ${1000 + (second % 5000)} "-" "${AGENT}"\n`
}

/** @param {number} second */
function clfTime(second) {
  const time = new Date(START + second * 1000)
  const day = String(time.getUTCDate()).padStart(2, '0')
  return `${day}/${MONTHS[time.getUTCMonth()]}/${time.getUTCFullYear()}:${time.toISOString().slice(11, 19)} +0000`
}

/**
 * Numbers from 0 to 1 (a linear congruential generator).
 * @param {number} seed
 */
function randomNumbers(seed) {
  let state = seed
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32
}

// The first page and the playground: what they weigh, what they ask for, and whether they move while they load.
import { gzipSync } from 'node:zlib'
import { kept, openPage, visit } from './page.js'

const MOST_BYTES = 120_000
const MOST_REQUESTS = 14

/** @param {import('../verify.js').Part} part */
export async function verify(part) {
  const [first, other] = [await loaded(part, 'index.html'), await loaded(part, 'playground.html')]
  const { check } = part
  const takes = `the first page takes ${first.bytes} bytes gzip, at most ${MOST_BYTES}`
  check(first.bytes <= MOST_BYTES, `${takes} (the playground ${other.bytes})`)
  const makes = `the first page makes ${first.requests} requests, at most ${MOST_REQUESTS}`
  check(first.requests <= MOST_REQUESTS, `${makes} (the playground ${other.requests})`)
  const shifts = `layout shift of the first page ${first.shift}, of the playground ${other.shift.toFixed(4)}`
  check(first.shift === 0 && other.shift < 0.001, shifts)
}

/** @param {import('../verify.js').Part} part @param {string} path */
async function loaded(part, path) {
  const page = await openPage(part)
  /** @type {Promise<number>[]} */
  const sizes = []
  page.on('response', (response) => {
    if (response.url().startsWith(part.url)) sizes.push(response.body().then((body) => gzipSync(body).length))
  })
  await visit(page, part.url + path)
  await page.waitForTimeout(1000)
  const { shift } = await kept(page)
  const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
  await page.close()
  return { bytes, requests: sizes.length, shift }
}

// The first page and the playground: what they weigh, what they ask for, and whether they move while they load. The first page has
// nothing of core, and its picture moves where readers let it.
import { gzipSync } from 'node:zlib'
import { kept, openPage, visit } from './page.js'

const MOST_BYTES = 120_000
const MOST_REQUESTS = 14
/** A text that every build of core holds. */
const OF_CORE = 'sluice.contract'

/** @param {import('../verify.js').Part} part */
export async function verify(part) {
  const [first, other] = [await loaded(part, 'index.html'), await loaded(part, 'playground.html')]
  const still = await loaded(part, 'index.html', { reducedMotion: 'reduce' })
  const { check } = part
  check(
    first.bytes <= MOST_BYTES,
    `${first.bytes} bytes gzip, at most ${MOST_BYTES}; playground ${other.bytes}`,
  )
  check(first.requests <= MOST_REQUESTS, `${first.requests} requests, at most ${MOST_REQUESTS}`)
  check(first.shift === 0 && other.shift < 0.001, `layout shift ${first.shift}, playground ${other.shift}`)
  check(!first.hasCore && other.hasCore, 'the first page loads nothing of core, which the playground does')
  const moves = `${first.moving} pictures of the first page move, ${still.moving} under reduced motion`
  check(first.moving > 0 && still.moving === 0, moves)
}

/**
 * @param {import('../verify.js').Part} part @param {string} path
 * @param {import('playwright-core').BrowserContextOptions} [options]
 */
async function loaded(part, path, options) {
  const page = await openPage(part, options)
  /** @type {Promise<Buffer>[]} */
  const answers = []
  page.on('response', (response) => {
    if (response.url().startsWith(part.url)) answers.push(response.body())
  })
  await visit(page, part.url + path)
  const moving = await page.evaluate(() => document.getAnimations().length)
  await page.waitForTimeout(1000)
  const { shift } = await kept(page)
  const bodies = await Promise.all(answers)
  await page.close()
  const bytes = bodies.reduce((sum, body) => sum + gzipSync(body).length, 0)
  const hasCore = bodies.some((body) => body.includes(OF_CORE))
  return { bytes, requests: bodies.length, shift, moving, hasCore }
}

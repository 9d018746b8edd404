// Law 2: nothing leaves the tab. The page, its frame and a worker of it try to, and each way is refused before anybody is asked.
import { openPage, visit } from './page.js'

/** Tries each way out of a worker, which has no images of its own. */
const PROBE = `
const opens = (it) => new Promise((done) => { it.onopen = () => done('passed'); it.onerror = () => done('refused') })
const tries = {
  fetch: () => fetch(URL_).then(() => 'passed'),
  WebSocket: () => opens(new WebSocket(URL_.replace('http', 'ws'))),
  importScripts: () => importScripts(URL_) ?? 'passed',
  Image: () => (typeof Image === 'undefined' ? 'not there' : 'passed'),
}
const tried = Object.entries(tries).map(async ([name, attempt]) => [name, await (async () => attempt())().catch((error) => error.name)])
Promise.all(tried).then((all) => postMessage(all))
`

/** @param {import('../verify.js').Part} part */
export async function verify(part) {
  const page = await openPage(part)
  for (const name of ['playground.html', 'log.html']) {
    await visit(page, part.url + name)
    part.site.asked.length = 0
    const tried = await page.evaluate(tryAll, `const URL_ = '${new URL('/own-host.js', part.url)}';${PROBE}`)
    const refused = tried.filter(([, result]) => result !== 'passed').map((each) => each.join(' '))
    const asked = part.site.asked.length
    const line = `${name}: ${refused.length} of ${tried.length} ways are refused (${refused.join(', ')})`
    part.check(refused.length === 6 && asked === 0, `${line}; ${asked} requests left`)
  }
  await page.close()
}

/**
 * Has a worker try, of the same frame and from a blob as the page makes its own, then the frame and the page. Runs in the page.
 * @param {string} code
 */
async function tryAll(code) {
  const frame = Object(document.querySelector('iframe')).contentWindow
  const worker = new frame.Worker(frame.URL.createObjectURL(new frame.Blob([code])))
  /** @type {string[][]} */
  const inWorker = await new Promise((resolve) => {
    worker.addEventListener('message', (/** @type {MessageEvent} */ { data }) => resolve(data))
  })
  const image = Object.assign(new frame.Image(), { src: new URL('/own-host.png', location.href) })
  const others = { 'image of the frame': image.decode(), 'fetch of the page': fetch('/own-host') }
  const refused = Object.entries(others).map(([name, attempt]) =>
    attempt.then(() => [name, 'passed']).catch((/** @type {Error} */ error) => [name, error.name]),
  )
  return [...inWorker, ...(await Promise.all(refused))]
}

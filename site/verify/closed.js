// Law 2: nothing leaves the tab. The page and its workers try to, and each way is refused; and no page asks another host.
import { readFileSync } from 'node:fs'
import { openPage, visit } from './page.js'

/** Tries each way out; `opens` waits for what an object says of its own. */
const PROBE = `
const opens = (make) => new Promise((done) => { const it = make(); it.onopen = it.onload = () => done('passed'); it.onerror = () => done('refused') })
const asking = () => { const it = new XMLHttpRequest(); it.open('GET', URL_); setTimeout(() => it.send()); return it }
const tries = {
  fetch: () => fetch(URL_).then(() => 'passed'),
  WebSocket: () => opens(() => new WebSocket(URL_.replace('http', 'ws'))),
  importScripts: () => importScripts(URL_) ?? 'passed',
  XMLHttpRequest: () => opens(asking),
  image: () => (new Image().src = URL_) && 'passed',
  EventSource: () => opens(() => new EventSource(URL_)),
}
const tried = Object.entries(tries).map(async ([name, attempt]) => [name, await (async () => attempt())().catch((error) => error.name)])
Promise.all(tried).then((all) => postMessage(all))
`

/** @param {import('../verify.js').Part} part */
export async function verify(part) {
  const { url, site, check } = part
  const page = await openPage(part)
  for (const name of ['playground.html', 'log.html']) {
    await visit(page, url + name)
    site.asked.length = 0
    // A worker as the page makes its own: of the same frame, from a blob.
    const results = /** @type {string[][]} */ (
      await page.evaluate(
        (code) =>
          new Promise((resolve) => {
            const frame = Object(document.querySelector('iframe')).contentWindow
            const worker = new frame.Worker(frame.URL.createObjectURL(new frame.Blob([code])))
            worker.addEventListener('message', (/** @type {MessageEvent} */ { data }) => resolve(data))
          }),
        `const URL_ = '${new URL('/asked-by-a-worker.js', url)}';${PROBE}`,
      )
    )
    const refused = results.filter(([, result]) => result !== 'passed').map((each) => each.join(' '))
    const asked = site.asked.length
    check(refused.length === 6 && asked === 0, `in a worker: ${refused.join(', ')}; ${asked} requests left`)
    const inPage = await page.evaluate((to) => fetch(to).then(String, ({ name: kind }) => kind), url)
    check(inPage === 'TypeError', `in the page: fetch ${inPage}`)
    const html = readFileSync(`site/dist/${name}`, 'utf8')
    const [, policy = ''] = /<meta http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html) ?? []
    const isClosed = policy.includes("connect-src 'none'") && policy.includes('worker-src blob:')
    const isStrict = !/unsafe-/.test(policy.replace(/style-src[^;]*;/, ''))
    check(isClosed && isStrict, `the policy of ${name}: ${policy.replaceAll(/'sha256-[^']*'/g, '(digest)')}`)
  }
  await page.close()
}

// Law 2: nothing leaves the tab. The page and its worker try to, and each way is refused; and no page asks another host.
import { readFileSync } from 'node:fs'
import { openWorker } from './worker.js'

const PROBE = `
const tries = {
  fetch: () => fetch(URL_).then(() => 'passed', (error) => error.name),
  WebSocket: () => new Promise((done) => { try { const it = new WebSocket(URL_.replace('http', 'ws')); it.onopen = () => done('passed'); it.onerror = () => done('refused') } catch (error) { done(error.name) } }),
  importScripts: async () => { try { importScripts(URL_); return 'passed' } catch (error) { return error.name } },
  XMLHttpRequest: () => new Promise((done) => { try { const it = new XMLHttpRequest(); it.open('GET', URL_); it.onload = () => done('passed'); it.onerror = () => done('refused'); it.send() } catch (error) { done(error.name) } }),
  image: async () => { try { new Image().src = URL_; return 'passed' } catch (error) { return error.name } },
  EventSource: () => new Promise((done) => { try { const it = new EventSource(URL_); it.onopen = () => done('passed'); it.onerror = () => done('refused') } catch (error) { done(error.name) } }),
}
Promise.all(Object.entries(tries).map(async ([name, attempt]) => [name, await attempt()])).then((all) => postMessage(all))
`

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @param {import('./serve.js').Site} site
 * @returns {Promise<[boolean, string][]>}
 */
export async function verify(browser, url, site) {
  const { page, close } = await openWorker(browser, url)
  const { origin } = new URL(url)
  site.asked.length = 0
  // A worker as the playground makes its own: of the same frame, from a blob.
  const tried = await page.evaluate(
    ([probe, address]) =>
      new Promise((resolve) => {
        const code = `const URL_ = ${JSON.stringify(address)};${probe}`
        const frame = Object(document.querySelector('iframe')).contentWindow
        const worker = new frame.Worker(frame.URL.createObjectURL(new frame.Blob([code])))
        worker.addEventListener('message', (/** @type {MessageEvent} */ { data }) => resolve(data))
      }),
    /** @type {[string, string]} */ ([PROBE, `${origin}/asked-by-a-worker.js`]),
  )
  const results = /** @type {[string, string][]} */ (tried)
  const inPage = await page.evaluate(
    (address) =>
      fetch(address).then(
        () => 'passed',
        (error) => error.name,
      ),
    url,
  )
  const asked = site.asked.filter((path) => path.includes('asked'))
  await close()
  const policy =
    /<meta http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(
      readFileSync('site/dist/playground.html', 'utf8'),
    )?.[1] ?? ''
  return [
    [
      results.length === 6 && results.every(([, result]) => result !== 'passed') && asked.length === 0,
      `in a worker: ${results.map((each) => each.join(' ')).join(', ')}; ${asked.length} requests left`,
    ],
    [inPage !== 'passed', `in the page: fetch ${inPage}`],
    [
      policy.includes("connect-src 'none'") &&
        policy.includes('worker-src blob:') &&
        !/unsafe-(?:inline|eval)'[^;]*;? ?$/.test(policy.replace(/style-src[^;]*;/, '')),
      `the policy of the page: ${policy.replaceAll(/'sha256-[^']*'/g, '(digest)')}`,
    ],
  ]
}

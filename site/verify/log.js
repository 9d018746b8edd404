// A log in the tab: the figures are the command line's, in at most twice its time and memory, the page does not stand still, nothing
// leaves the tab, and the page learns the names of the callers that it shows alone.
import { spawnSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { randomFrom } from '../playground/traffic.ts'

const LINES = 1_000_000
const MARK = 'marked-7f3a'

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @param {import('./serve.js').Site} site
 * @returns {Promise<[boolean, string][]>}
 */
export async function verify(browser, url, site) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-log-'))
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  /** @type {string[]} */
  const asked = []
  page.on('request', (request) => asked.push(request.url()))
  await page.addInitScript(watchPage)
  try {
    await page.goto(`${url}log.html`, { waitUntil: 'networkidle' })
    await page.waitForTimeout(2000)
    const idle = await page.evaluate(() => /** @type {any} */ (globalThis).longest)
    asked.length = site.asked.length = 0

    const file = join(folder, 'access.log')
    await writeLog(file)
    const before = memoryOfChildren()
    const started = performance.now()
    await page.setInputFiles('input[type=file]', file)
    await page.waitForSelector('.peaks', { timeout: 120_000 })
    const ms = performance.now() - started
    const memory = memoryOfChildren() - before
    const busy = await page.evaluate(() => /** @type {any} */ (globalThis).longest)
    const command = commandLine(file)
    const { seen, highest } = await page.evaluate(() => /** @type {any} */ (globalThis).told)
    const shown = await page.locator('table').last().locator('tbody tr').allInnerTexts()

    const packed = join(folder, 'access.log.gz')
    writeFileSync(packed, gzipSync(readFileSync(file).subarray(0, 1_000_000)))
    await page.setInputFiles('input[type=file]', packed)
    await page.waitForSelector('.facts:has-text("access.log.gz")')
    const callers = new Set(JSON.stringify(highest).match(/10\.\d+\.\d+\.\d+/g))
    const names = new Set(JSON.stringify(seen).match(/10\.\d+\.\d+\.\d+/g))
    return [
      [
        same(seen, command.report),
        `${LINES} lines: the figures of the command line, ${shown.length} callers shown`,
      ],
      [
        names.size === 0 && callers.size <= 10,
        `the page learns ${callers.size} names, at most 10, and ${names.size} with the counts`,
      ],
      [!JSON.stringify([seen, highest]).includes(MARK), 'no line of the log reaches the page'],
      [
        asked.length + site.asked.length === 0,
        `${asked.length + site.asked.length} requests while logs are read`,
      ],
      [
        ms <= 2 * command.ms,
        `read in ${Math.round(ms)} ms, the command line ${Math.round(command.ms)} ms, at most twice`,
      ],
      [
        memory <= 2 * command.memory,
        `${Math.round(memory / 1024)} MB more in the browser, the command line ${Math.round(command.memory / 1024)} MB, at most twice`,
      ],
      [
        busy <= Math.max(100, idle),
        `the longest task of the page ${busy} ms, of an idle one ${idle} ms, at most 100`,
      ],
    ]
  } finally {
    await page.close()
    rmSync(folder, { recursive: true })
  }
}

/** Keeps the longest task of the page, and what its worker tells it. */
function watchPage() {
  const kept = {
    longest: 0,
    told: { seen: /** @type {unknown} */ (undefined), highest: /** @type {unknown} */ (undefined) },
  }
  const top = /** @type {any} */ (globalThis.top)
  if (top === globalThis) Object.assign(globalThis, kept)
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) top.longest = Math.max(top.longest, Math.round(duration))
  }).observe({ type: 'longtask', buffered: true })
  const { Worker: Own } = globalThis
  globalThis.Worker = class extends Own {
    /** @param {string | URL} address */
    constructor(address) {
      super(address)
      this.addEventListener('message', ({ data }) => {
        if (data.windows) top.told.seen ??= data
        if (data.highest) top.told.highest ??= data.highest
      })
    }
  }
}

/** @param {string} file */
async function writeLog(file) {
  const out = createWriteStream(file)
  const random = randomFrom(3)
  const start = Date.UTC(2026, 0, 5)
  for (let i = 0; i < LINES; i++) {
    const at = new Date(start + i * 50)
    const time = `${String(at.getUTCHours()).padStart(2, '0')}:${at.toISOString().slice(14, 19)}`
    const caller = Math.floor(50_000 ** random())
    const ip = `10.${caller >> 16}.${(caller >> 8) & 255}.${caller & 255}`
    const line = `${ip} - - [05/Jan/2026:${time} +0000] "GET /${MARK}/${i % 97} HTTP/1.1" 200 512 "-" "${MARK}"\n`
    if (!out.write(i % 1000 === 7 ? `${MARK} is no line of a log\n` : line)) await once(out, 'drain')
  }
  out.end()
  await once(out, 'finish')
}

/**
 * What the command line finds, how long it takes, and its memory in KiB.
 * @param {string} file
 */
function commandLine(file) {
  const started = performance.now()
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [
      '--import',
      'data:text/javascript,process.on("exit",()=>console.error(process.resourceUsage().maxRSS))',
      'packages/cli/bin/sluice.js',
      'suggest',
      file,
      '--json',
    ],
    { encoding: 'utf8', maxBuffer: 2 ** 28 },
  )
  const ms = performance.now() - started
  return { ms, memory: Number(/(\d+)\s*$/.exec(stderr)?.[1]), report: JSON.parse(stdout) }
}

/**
 * Whether the page was told the counts of a report.
 * @param {any} seen @param {any} report
 */
function same({ basis, windows }, report) {
  const skipped = Object.entries(report.basis.skipped).map(([reason, { count }]) => [reason, count])
  const formats = Object.values(report.basis.formats)
  /** @param {any} window */
  const figures = ({ windowMs, without, peaks }) => [windowMs, without, peaks]
  const limits = [report, { windows }].map((each) =>
    each.windows.map((/** @type {any} */ { recommended }) => recommended?.policy?.limit ?? recommended),
  )
  const counts = [{ ...report.basis, skipped, formats }, ...report.windows.map(figures), limits[0]]
  return JSON.stringify(counts) === JSON.stringify([basis, ...windows.map(figures), limits[1]])
}

/** The resident memory of the processes that this one has started, and of theirs, in KiB. */
function memoryOfChildren() {
  const { stdout } = spawnSync('ps', ['-eo', 'pid=,ppid=,rss='], { encoding: 'utf8' })
  const rows = stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
  const family = new Set([process.pid])
  for (const [pid = 0, parent = 0] of rows) if (family.has(parent)) family.add(pid)
  return rows.reduce(
    (sum, [pid = 0, , rss = 0]) => sum + (family.has(pid) && pid !== process.pid ? rss : 0),
    0,
  )
}

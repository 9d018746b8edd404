// A log in the tab: the figures are the command line's, in at most twice its time and memory, the page does not stand still, nothing
// leaves the tab, and the page learns the names of the callers that it shows alone.
import { spawnSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { readPolicies } from '@sluice/policies'
import { longLog } from '../../packages/bench/src/logs/sample.js'
import { countsOf } from '../playground/log-calls.ts'
import { kept, openPage, visit } from './page.js'

const LINES = 1_000_000
const MARK = 'marked-7f3a'

/** @param {import('../verify.js').Part} part */
export async function verify(part) {
  const { url, site, check } = part
  const folder = mkdtempSync(join(tmpdir(), 'sluice-log-'))
  const page = await openPage(part, { permissions: ['clipboard-read', 'clipboard-write'] })
  /** @type {string[]} */
  const asked = []
  page.on('request', (request) => request.url().startsWith('blob:') || asked.push(request.url()))
  try {
    await visit(page, `${url}log.html`)
    await page.waitForTimeout(2000)
    const idle = (await kept(page)).longest
    asked.length = site.asked.length = 0

    const file = join(folder, 'access.log')
    writeLog(file)
    const before = memoryOfChildren()
    const started = performance.now()
    await page.setInputFiles('input[type=file]', file)
    await page.waitForSelector('.peaks', { timeout: 120_000 })
    const ms = performance.now() - started
    const memory = memoryOfChildren() - before
    const { longest, told } = await kept(page)
    const command = commandLine(file)
    const seen = told.find(({ windows }) => windows)

    const packed = join(folder, 'access.log.gz')
    for (const at of [0, 500_000])
      appendFileSync(packed, gzipSync(readFileSync(file).subarray(at, at + 500_000)))
    await page.setInputFiles('input[type=file]', packed)
    await page.waitForSelector('.facts:has-text("access.log.gz")')
    const unpacked = (await kept(page)).told.find(({ windows }) => windows)
    check(same(unpacked, commandLine(packed).report), 'gzip of two members: the figures of the command line')
    const callers = namesIn(told.find(({ highest }) => highest))
    check(same(seen, command.report), `${LINES} lines: the figures of the command line`)
    const names = namesIn(seen)
    check(names === 0 && callers <= 10, `the page learns ${callers} names, ${names} of them with the counts`)
    check(!JSON.stringify(told).includes(MARK), 'no line of the log reaches the page')
    const requests = asked.length + site.asked.length
    check(requests === 0, `${requests} requests while logs are read`)
    const [took, own] = [ms, command.ms].map(Math.round)
    check(ms <= 2 * command.ms, `read in ${took} ms, by the command line in ${own} ms, at most twice`)
    const [more, all] = [memory, command.memory].map((kib) => kib >> 10)
    check(memory <= 2 * command.memory, `${more} MB more, the command line ${all} MB, at most twice`)
    check(
      longest <= Math.max(100, idle),
      `the longest task ${longest} ms, of an idle page ${idle} ms, at most 100`,
    )
    await use(page, file, check)
  } finally {
    await page.close()
    rmSync(folder, { recursive: true })
  }
}

/**
 * Stops a log, opens another one while one is read, moves the sliders, copies the file, and plays the calls of the first caller.
 * @param {import('playwright-core').Page} page @param {string} file @param {import('../verify.js').Part['check']} check
 */
async function use(page, file, check) {
  /** @param {string} name */
  const click = (name) => page.getByRole('button', { name }).click()
  await page.setInputFiles('input[type=file]', file)
  await click('Stop')
  const isEmpty = (await page.locator('.facts, [role=status]').count()) === 0
  await page.setInputFiles('input[type=file]', file)
  await click('Take the sample')
  await page.waitForSelector('.facts:has-text("the sample")')
  const judged = (await kept(page)).told.filter((each) => each.windows).length
  check(isEmpty && judged === 1, `a log is stopped, and another read in place of one: ${judged} is judged`)
  const [, limit] = await page.locator('.sliders input').all()
  await limit?.press('Home')
  await click('Copy the policy file')
  const { limiters, errors } = readPolicies(await page.evaluate(() => navigator.clipboard.readText()))
  const lowest = await page.locator('.sliders b').last().innerText()
  const isCopied = errors.length === 0 && limiters[0]?.policies[0]?.limit === Number(lowest)
  check(isCopied, `the policy file is copied, with the limit ${lowest}`)
  await click("Play the first one's calls in the playground")
  await page.waitForURL('**/playground.html#*')
  const totals = await page.locator('.totals:has-text("denied")').innerText()
  check(/[1-9]\d* denied/.test(totals), `the calls of the first caller in the playground: ${totals}`)
}

/** The number of callers' names in what was told. @param {unknown} told */
function namesIn(told) {
  return new Set(JSON.stringify(told).match(/10\.\d+\.\d+\.\d+/g)).size
}

/** A log with a mark in each line that is read, and in some that are none. @param {string} file */
function writeLog(file) {
  for (const piece of longLog(LINES, 50_000))
    appendFileSync(file, `${piece.replaceAll('/api/', `/${MARK}/`)}${MARK} is no line of a log\n`)
}

/**
 * What the command line finds, how long it takes, and its memory in KiB.
 * @param {string} file
 */
function commandLine(file) {
  const started = performance.now()
  const tells = 'data:text/javascript,process.on("exit",()=>console.error(process.resourceUsage().maxRSS))'
  const args = ['--import', tells, 'packages/cli/bin/sluice.js', 'suggest', file, '--json']
  const options = /** @type {const} */ ({ encoding: 'utf8', maxBuffer: 2 ** 28 })
  const { stdout, stderr } = spawnSync(process.execPath, args, options)
  const ms = performance.now() - started
  return { ms, memory: Number(/(\d+)\s*$/.exec(stderr)?.[1]), report: JSON.parse(stdout) }
}

/**
 * Whether the page was told the counts of a report.
 * @param {any} seen @param {any} report
 */
function same(seen, report) {
  return JSON.stringify(seen) === JSON.stringify(countsOf(report))
}

/** The resident memory of the processes that this one has started, and of theirs, in KiB. */
function memoryOfChildren() {
  const { stdout } = spawnSync('ps', ['-eo', 'pid=,ppid=,rss='], { encoding: 'utf8' })
  const family = new Set([process.pid])
  let sum = 0
  for (const [, pid, parent, rss] of stdout.matchAll(/(\d+) +(\d+) +(\d+)/g)) {
    if (!family.has(Number(parent))) continue
    family.add(Number(pid))
    sum += Number(rss)
  }
  return sum
}

// The forms of the playground: whatever is set comes into the address, and what is copied or saved is what is shown.
import { readFileSync } from 'node:fs'
import { algorithms } from '@sluice/core/store'

const START = '2&limits=gcra(limit:20,window:10s,burst:5)&limits=slidingLog(limit:20,window:10s)'

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @returns {Promise<[boolean, string][]>}
 */
export async function verify(browser, url) {
  const permissions = ['clipboard-read', 'clipboard-write']
  const context = await browser.newContext({ permissions, viewport: { width: 1280, height: 900 } })
  const page = await context.newPage()
  /** @type {string[]} */
  const errors = []
  page.on('pageerror', ({ message }) => void errors.push(message))
  await page.goto(`${url}playground.html#${START}`)
  await page.waitForSelector('.drawing svg')
  const [one, two] = [page.locator('.column').first(), page.locator('.column').nth(1)]
  /** @type {[boolean, string][]} */
  const lines = []
  /** @param {string} what @param {() => Promise<unknown>} act @param {string} limits */
  const sets = async (what, act, limits) => {
    await act()
    const isSet = await page
      .waitForFunction((end) => location.hash.replace(/.*?&limits=/, '') === end, limits, { timeout: 10_000 })
      .then(() => true)
      .catch(() => false)
    lines.push([isSet, `${what}: ${isSet ? limits : new URL(page.url()).hash}`])
  }
  const [gcra, log] = ['gcra(limit:20,window:10s,burst:5)', '&limits=slidingLog(limit:20,window:10s)']
  const added = 'slidingLog(limit:100,window:1m)'
  await sets('a policy is added', () => one.getByText('Add a policy').click(), `${gcra}+${added}${log}`)
  await sets('one is removed', () => one.getByText('Remove policy 1').click(), added + log)
  const algorithm = one.getByLabel('algorithm')
  await sets(
    'an algorithm is chosen',
    () => algorithm.selectOption('tokenBucket'),
    `tokenBucket(limit:100,window:1m)${log}`,
  )
  await one.getByLabel('capacity').fill('7')
  await sets(
    'another has no such option',
    () => algorithm.selectOption('fixedWindow'),
    `fixedWindow(limit:100,window:1m)${log}`,
  )
  await sets(
    'a penalty is added',
    () => one.getByText('Penalty').click(),
    `fixedWindow(limit:100,window:1m)+penalty(after:3,block:10s,factor:2)${log}`,
  )
  await one.getByText('Penalty').click()
  await page.getByText('Compare with other limits').click()
  await sets(
    'a column is a copy of the last one',
    () => page.locator('.column').nth(2).getByLabel('limit', { exact: true }).fill('3'),
    `fixedWindow(limit:100,window:1m)${log}&limits=slidingLog(limit:3,window:10s)`,
  )
  await sets(
    'a column is removed',
    () => two.getByText('Remove', { exact: true }).click(),
    'fixedWindow(limit:100,window:1m)&limits=slidingLog(limit:3,window:10s)',
  )
  await page.waitForFunction(() => document.querySelectorAll('.drawing svg').length === 4)
  await page.getByText('Copy the link').click()
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText())
  lines.push([(await clipboard()) === page.url(), 'the link is copied'])
  await page.getByText('The calls as a table').click()
  await page.getByText('Copy all').click()
  const calls = (await clipboard()).split('\n').length - 1
  const most = await page.locator('.chosen').first().getAttribute('max')
  lines.push([calls === Number(most), `all ${calls} calls are copied as a table`])
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByText('Save as a file').click(),
  ])
  const saved = readFileSync(await download.path(), 'utf8')
  lines.push([`#${saved}` === new URL(page.url()).hash, 'a scenario is saved as a file'])
  const list = Array.from({ length: 801 }, (_, i) => 7 * i + (i % 3)).join('\n')
  const buffer = Buffer.from(`2&kind=list&text=${encodeURIComponent(list)}&limits=${gcra}`)
  await page.setInputFiles('input[type=file]', { name: 'scenario.txt', mimeType: 'text/plain', buffer })
  await page.waitForFunction(() => document.querySelector('.chosen')?.getAttribute('max') === '801')
  const why = await page.getByText('There is no link').innerText()
  lines.push([why.includes('801 pasted calls'), `a file of 801 calls is opened: ${why}`])
  await page.evaluate(() => void (location.hash = '9&limits=gcra(limit:1,window:1s)'))
  const said = await page.getByText('was not understood').innerText()
  lines.push([said.includes('version'), `a broken address: ${said}`])
  lines.push(await choices(page, `${url}playground.html`))
  lines.push([errors.length === 0, `${errors.length} errors ${errors.join('; ')}`])
  await context.close()
  return lines
}

/** Scenarios in which every option with choices has a field, the algorithm of the first column apart. */
const CHOICES = [
  '2&kind=even&limits=slidingWindow(limit:20,window:10s)+tokenBucket(limit:20,window:10s)+penalty(after:3,block:10s)',
  ...Object.keys(algorithms).map((name) => {
    const window = name === 'calendarWindow' ? 'every:day' : 'window:10s'
    return `2&limits=${name}(limit:20,${window})`
  }),
]

/**
 * Chooses every choice of every field, by mouse and by keyboard; each has to come into the address, or to be the default.
 * @param {import('playwright-core').Page} page
 * @param {string} address
 * @returns {Promise<[boolean, string]>}
 */
async function choices(page, address) {
  const missed = new Set()
  let made = 0
  for (const scenario of CHOICES) {
    await page.goto(`${address}#${scenario}`)
    await page.reload()
    await page.waitForSelector('.drawing svg')
    const count = await page.locator('.traffic select, .limits select').count()
    for (let i = 0; i < count; i++) {
      await page.evaluate(open, scenario)
      const field = page.locator('.traffic select, .limits select').nth(i)
      const values = await field.evaluate((/** @type {any} */ each) =>
        [...each.options].map(({ value }) => value),
      )
      const name = await field.evaluate((/** @type {any} */ each) => each.labels[0].textContent)
      for (const how of ['mouse', 'keyboard']) {
        for (const value of values) {
          await page.evaluate(open, scenario)
          if (how === 'mouse') await field.selectOption(value)
          else await chooseByKeyboard(page, field, values.indexOf(value))
          made++
          const isThere = await page
            .waitForFunction(isChosen, [value, String(i)], { timeout: 5000 })
            .then(() => true)
            .catch(() => false)
          if (!isThere) missed.add(`${name}: ${value} by ${how}`)
        }
      }
    }
  }
  return [
    missed.size === 0 && made > 0,
    `${made} choices are made by mouse and keyboard ${[...missed].join(', ')}`,
  ]
}

/**
 * Shows a scenario, whatever was chosen in the last one. Runs in the page.
 * @param {string} scenario
 */
function open(scenario) {
  history.replaceState(history.state, '', `#${scenario}`)
  dispatchEvent(new HashChangeEvent('hashchange'))
}

/**
 * Whether a field has this value, and none a problem: but for the kind 'list', whose list is empty. Runs in the page.
 * @param {string[]} given
 */
function isChosen([value = '', place = '']) {
  const fields = document.querySelectorAll('.traffic select, .limits select')
  const isSound = document.querySelectorAll('.problem:not(:empty)').length === 0 || value === 'list'
  return /** @type {any} */ (fields[Number(place)])?.value === value && isSound
}

/**
 * @param {import('playwright-core').Page} page
 * @param {import('playwright-core').Locator} field
 * @param {number} place
 */
async function chooseByKeyboard(page, field, place) {
  await field.focus()
  await page.keyboard.press('Home')
  for (let i = 0; i < place; i++) await page.keyboard.press('ArrowDown')
}

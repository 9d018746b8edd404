// The forms of the playground: whatever is set comes into the address, and what is copied or saved is what is shown.
import { readFileSync } from 'node:fs'
import { algorithms } from '@sluice/core/store'
import { PRESETS } from '../playground/presets.ts'
import { comesTrue, openPage, visit } from './page.js'

const [GCRA, LOG] = ['gcra(limit:20,window:10s,burst:5)', '&limits=slidingLog(limit:20,window:10s)']
const MINUTE = '(limit:100,window:1m)'

/** @param {import('../verify.js').Part} part */
export async function verify(part) {
  const { url, check } = part
  const page = await openPage(part, { permissions: ['clipboard-read', 'clipboard-write'] })
  /** @type {string[]} */
  const errors = []
  page.on('pageerror', ({ message }) => void errors.push(message))
  await visit(page, `${url}playground.html#2&limits=${GCRA}${LOG}`)
  const [one, two, three] = [0, 1, 2].map((i) => page.locator('.column').nth(i))
  if (!one || !two || !three) return
  /** @param {string} what @param {() => Promise<unknown>} act @param {string} limits */
  const sets = async (what, act, limits) => {
    await act()
    const isSet = await comesTrue(page, (end) => location.hash.replace(/.*?&limits=/, '') === end, limits)
    check(isSet, `${what}: ${isSet ? limits : new URL(page.url()).hash}`)
  }
  const clickOn = (/** @type {string} */ text) => () => one.getByText(text).click()
  await sets('a policy is added', clickOn('Add a policy'), `${GCRA}+slidingLog${MINUTE}${LOG}`)
  await sets('one is removed', clickOn('Remove policy 1'), `slidingLog${MINUTE}${LOG}`)
  const choose = (/** @type {string} */ name) => () => one.getByLabel('algorithm').selectOption(name)
  await sets('an algorithm is chosen', choose('tokenBucket'), `tokenBucket${MINUTE}${LOG}`)
  await one.getByLabel('capacity').fill('7')
  const fixed = `fixedWindow${MINUTE}`
  await sets('another has no such option', choose('fixedWindow'), fixed + LOG)
  const penalty = 'penalty(after:3,block:10s,factor:2)'
  await sets('a penalty is added', clickOn('Penalty'), `${fixed}+${penalty}${LOG}`)
  await clickOn('Penalty')()
  await page.getByText('Compare with other limits').click()
  const last = LOG.replace('20', '3')
  const fill = () => three.getByLabel('limit', { exact: true }).fill('3')
  await sets('a column is a copy of the last one', fill, fixed + LOG + last)
  const remove = () => two.getByText('Remove', { exact: true }).click()
  await sets('a column is removed', remove, fixed + last)
  await page.waitForFunction(() => document.querySelectorAll('.drawing svg').length === 4)
  await page.getByText('Copy the link').click()
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText())
  check((await clipboard()) === page.url(), 'the link is copied')
  await page.getByText('The calls as a table').click()
  await page.getByText('Copy all').click()
  const calls = (await clipboard()).split('\n').length - 1
  const most = await page.locator('.chosen').first().getAttribute('max')
  check(calls === Number(most), `all ${calls} calls are copied as a table`)
  const downloads = page.waitForEvent('download')
  await page.getByText('Save as a file').click()
  const saved = readFileSync(await (await downloads).path(), 'utf8')
  check(`#${saved}` === new URL(page.url()).hash, 'a scenario is saved as a file')
  const list = Array.from({ length: 801 }, (_, i) => 7 * i + (i % 3)).join('\n')
  const buffer = Buffer.from(`2&kind=list&text=${encodeURIComponent(list)}&limits=${GCRA}`)
  await page.setInputFiles('input[type=file]', { name: 'scenario.txt', mimeType: 'text/plain', buffer })
  await page.waitForFunction(() => document.querySelector('.chosen')?.getAttribute('max') === '801')
  const why = await page.getByText('There is no link').innerText()
  check(why.includes('801 pasted calls'), `a file of 801 calls is opened: ${why}`)
  await page.evaluate(() => void (location.hash = '9&limits=gcra(limit:1,window:1s)'))
  const said = await page.getByText('was not understood').innerText()
  check(said.includes('version'), `a broken address: ${said}`)
  await typedAndMoved(page, part)
  await choices(page, part)
  await visit(page, `${url}index.html`)
  const copied = new Set()
  for (const tab of await page.locator('.first-code .tabs label').all()) {
    await tab.click()
    await page.locator('.vp-block.active .language-sh button.copy').click()
    copied.add(await clipboard())
  }
  const lines = [...copied].filter((line) => /^npm install @sluice\/\w+[\w @/-]*$/.test(line))
  check(lines.length === 5, `each tab of the first page has its line copied: ${lines.join('; ')}`)
  check(errors.length === 0, `${errors.length} errors ${errors.join('; ')}`)
  await page.close()
}

/**
 * Numbers with zeros are typed, a day is looked at from all sides, strips begin at one height below a head of two lines, and a button that
 * cannot copy says so.
 * @param {import('playwright-core').Page} page
 * @param {import('../verify.js').Part} part
 */
async function typedAndMoved(page, { url, check }) {
  await show(page, url, '2&limits=gcra(limit:1,window:1s)')
  await page.getByLabel('calls a second').fill('')
  await page.keyboard.type('0.05')
  const isTyped = await comesTrue(page, () => location.hash.includes('rate=0.05'))
  check(isTyped, `0.05 is typed, letter by letter: ${new URL(page.url()).hash}`)
  await show(page, url, PRESETS.find(({ id }) => id === 'day')?.fragment ?? '')
  for (const name of ['Later', 'Zoom out', 'Zoom in', 'Later']) await page.getByLabel(name).click()
  const isHalf = await comesTrue(page, () => location.hash.includes('from=43200000&to=86400000'))
  check(isHalf && (await page.locator('.stale').count()) === 0, 'a day is moved and zoomed within its time')
  const long = `name:${'long'.repeat(12)}`
  await show(page, url, `2&limits=fixedWindow(limit:20,window:10s,${long})${LOG}+wait(maxWait:1s)`)
  const tops = [0, 1].map((i) => page.locator('.strip').nth(i).boundingBox())
  const [one, other] = (await Promise.all(tops)).map((box) => box?.y)
  check(one === other, `strips of two columns begin at ${one} and ${other} px`)
  await page.evaluate(() => void Object.defineProperty(navigator, 'clipboard', { value: undefined }))
  await page.getByText('Copy the link').click()
  check(await page.getByText('Not copied').isVisible(), 'where there is no clipboard, the button says so')
}

/**
 * Opens a scenario in a page of its own: what else is in the address alone opens no page anew.
 * @param {import('playwright-core').Page} page @param {string} url @param {string} scenario
 */
async function show(page, url, scenario) {
  await page.goto('about:blank')
  await visit(page, `${url}playground.html#${scenario}`)
}

/** Scenarios in which every option with choices has a field, the algorithm of the first column apart. */
const CHOICES = [
  `2&kind=even&limits=slidingWindow(limit:20,window:10s)+tokenBucket(limit:20,window:10s)+penalty(after:3,block:10s)${LOG}`,
  ...Object.keys(algorithms).map((name) => {
    const window = name === 'calendarWindow' ? 'every:day' : 'window:10s'
    return `2&limits=${name}(limit:20,${window})`
  }),
]

/**
 * Chooses every choice of every field, by mouse and by keyboard; each has to come into the scenario as it is saved, or into its code.
 * @param {import('playwright-core').Page} page
 * @param {import('../verify.js').Part} part
 */
async function choices(page, { url, check }) {
  /** @type {string[]} */
  const missed = []
  let made = 0
  const fields = page.locator('.playground select')
  const result = page.locator('a[download], [aria-label=TypeScript]')
  const written = () => result.evaluateAll((all) => all.map((each) => each.outerHTML).join())
  for (const scenario of CHOICES) {
    await show(page, url, scenario)
    for (let place = 0; place < (await fields.count()); place++) {
      const field = fields.nth(place)
      const values = await field.locator('option').evaluateAll((all) => all.map((each) => Object(each).value))
      for (const [index, value] of [...values, ...values].entries()) {
        await page.evaluate(open, scenario)
        const [before, text] = [await field.inputValue(), await written()]
        if (index < values.length) await field.selectOption(value)
        else {
          await field.press('Home')
          for (let i = values.length; i < index; i++) await field.press('ArrowDown')
        }
        made++
        const isSet = value === before || (await written()) !== text
        // The kind 'list' has a problem: its list is empty.
        const isSound = value === 'list' || (await page.locator('.problem:not(:empty)').count()) === 0
        const way = index < values.length ? 'by mouse' : 'by keyboard'
        if (!isSet || !isSound || (await field.inputValue()) !== value)
          missed.push(`${value} of field ${place + 1} ${way} in ${scenario}`)
      }
      await page.evaluate(open, scenario)
    }
  }
  check(
    missed.length === 0 && made > 0,
    `${made} choices are made by mouse and keyboard ${missed.join(', ')}`,
  )
}

/**
 * Shows a scenario, whatever was chosen in the last one. Runs in the page.
 * @param {string} scenario
 */
function open(scenario) {
  history.replaceState(history.state, '', `#${scenario}`)
  dispatchEvent(new HashChangeEvent('hashchange', { newURL: location.href }))
}

// npm run verify -- site [PART...]: the site, built and served under a base path, in Chromium. Prints a line for each demand with
// its figure; exit 1 where one is missed. `pictures` draws the screenshots instead.
import { spawnSync } from 'node:child_process'
import { chromium } from 'playwright-core'
import { programPath } from '../scripts/programs.js'
import { serve } from './verify/serve.js'

const PARTS = 'equal closed portable quick typing forms log search readers access drawn lies'.split(' ')
const wanted = process.argv.slice(2)
const program = programPath('chromium')

/** What a part gets: the site as it is served, and what prints whether a demand is met. @typedef {ReturnType<typeof partOf>} Part */

if (!process.env['SLUICE_SITE_BUILT']) {
  const { status } = spawnSync(process.execPath, ['scripts/site.js'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status !== 0) process.exit(1)
}
const site = await serve('site/dist', '/a/base/')
const browser = await chromium.launch({ ...(program && { executablePath: program }), args: ['--no-sandbox'] })
try {
  for (const name of wanted.length > 0 ? wanted : PARTS) {
    /** @type {{ verify: (part: Part) => Promise<void> }} */
    const { verify } = await import(`./verify/${name}.js`)
    await verify(partOf(name))
  }
} finally {
  await browser.close()
  site.close()
}
process.exit()

/** @param {string} name */
function partOf(name) {
  /** @param {boolean} passed @param {string} line */
  const check = (passed, line) => {
    console.log(`${passed ? '✓' : '✗'} ${name.padEnd(8)} ${line}`)
    if (!passed) process.exitCode = 1
  }
  return { browser, url: site.url, site, check }
}

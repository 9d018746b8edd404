// npm run verify -- site [PART...]: the site, built and served under a base path, in Chromium. Prints a line for each demand with
// its figure; exit 1 where one is missed. `pictures` draws the screenshots instead.
import { spawnSync } from 'node:child_process'
import { chromium } from 'playwright-core'
import { programPath } from '../scripts/programs.js'
import { serve } from './verify/serve.js'

const PARTS = [
  'equal',
  'closed',
  'portable',
  'quick',
  'typing',
  'forms',
  'log',
  'search',
  'readers',
  'access',
  'drawn',
  'lies',
  'lines',
]
const wanted = process.argv.slice(2)
const parts = wanted.length > 0 ? wanted : PARTS
const program = programPath('chromium')

if (!process.env['SLUICE_SITE_BUILT']) {
  const { status } = spawnSync(process.execPath, ['scripts/site.js'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status !== 0) process.exit(1)
}
const server = await serve('site/dist', '/a/base/')
const browser = await chromium.launch({ ...(program && { executablePath: program }), args: ['--no-sandbox'] })
try {
  for (const part of parts) {
    /** @type {{ verify: (browser: import('playwright-core').Browser, url: string, site: import('./verify/serve.js').Site) => Promise<readonly [boolean, string][]> }} */
    const { verify } = await import(`./verify/${part}.js`)
    for (const [passed, line] of await verify(browser, server.url, server)) {
      console.log(`${passed ? '✓' : '✗'} ${part.padEnd(8)} ${line}`)
      if (!passed) process.exitCode = 1
    }
  }
} finally {
  await browser.close()
  await server.close()
}
process.exit()

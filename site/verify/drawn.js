// The stored screenshots show the controls, texts and boxes of the site as it is built.
import { staleShots } from './pictures.js'

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @returns {Promise<[boolean, string][]>}
 */
export async function verify(browser, url) {
  const { count, stale } = await staleShots(browser, url)
  const which = stale.length > 0 ? `: ${stale.join(', ')}; npm run verify -- site pictures draws them` : ''
  return [
    [stale.length === 0, `${count} screenshots, ${stale.length} show something else than the site${which}`],
  ]
}

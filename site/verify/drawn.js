// The stored screenshots show the controls, texts and boxes of the site as it is built.
import { existsSync, readFileSync } from 'node:fs'
import { OUT, settled, shots } from './pictures.js'

/** @param {import('../verify.js').Part} part */
export async function verify(part) {
  /** @type {string[]} */
  const stale = []
  let count = 0
  await shots(part, async (page, name) => {
    count++
    const file = `${OUT}/${name}.json`
    const stored = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : []
    const now = await settled(page)
    if (now.length !== stored.length || !now.every((each, i) => isLike(each, stored[i]))) stale.push(name)
  })
  const which = stale.length > 0 ? `: ${stale.join(', ')}; npm run verify -- site pictures draws them` : ''
  const shown = `${count} screenshots, ${stale.length} show something else than the site${which}`
  part.check(stale.length === 0, shown)
}

/**
 * Whether two are the same control with the same text, in the same place as far as fonts of machines are alike.
 * @param {import('./pictures.js').Standing} one
 * @param {import('./pictures.js').Standing} other
 */
function isLike(one, other) {
  return one.every(
    (each, i) => each === other[i] || (i > 1 && Math.abs(Number(each) - Number(other[i])) <= 3),
  )
}

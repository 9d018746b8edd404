// Law 1: what the playground decides for an address in a browser is what it decides in Node, call by call, of which run.test.ts shows that
// the library decides it.
import { isDeepStrictEqual } from 'node:util'
import { formatScenario, scenarioAt } from '../playground/address.ts'
import { PRESETS } from '../playground/presets.ts'
import { run } from '../playground/run.ts'
import { readScenario } from '../playground/scenario.ts'
import { randomScenario } from '../playground/test/random-scenario.ts'
import { openPage, visit } from './page.js'

const ADDRESSES = 200

/** @param {import('../verify.js').Part} part */
export async function verify(part) {
  const page = await openPage(part)
  await visit(page, `${part.url}playground.html`)
  const fragments = Array.from({ length: ADDRESSES }, (_, i) => formatScenario(randomScenario(1000 + i)))
  let [calls, wrong] = [0, 0]
  for (const text of [...fragments, ...PRESETS.map(({ fragment }) => fragment)]) {
    const { scenario } = readScenario(scenarioAt(text).scenario)
    const here = await run(scenario)
    await page.evaluate((fragment) => void (location.hash = fragment), text)
    const answer = await page.waitForFunction(
      (fragment) => Object(globalThis).kept.told.find((/** @type {any} */ { text: of }) => of === fragment),
      text,
    )
    const { columns: there } = await answer.jsonValue()
    for (const [i, mine] of here.entries()) {
      calls += mine.at.length
      if (isDeepStrictEqual(mine, there[i])) continue
      wrong++
      console.log(`${text}: limits ${i + 1} differ`)
    }
  }
  await page.close()
  const asked = `${ADDRESSES} random addresses and ${PRESETS.length} presets`
  part.check(wrong === 0 && calls > 0, `${asked}: ${calls} calls, ${wrong} limits differ`)
}

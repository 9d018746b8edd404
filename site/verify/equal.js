// Law 1: what the playground decides for an address in a browser is what the library decides in Node, call by call.
import { formatScenario, scenarioAt } from '../playground/address.ts'
import { PRESETS } from '../playground/presets.ts'
import { run } from '../playground/run.ts'
import { readScenario } from '../playground/scenario.ts'
import { randomScenario } from '../playground/test/random-scenario.ts'
import { replayed } from '../playground/test/replayed.ts'
import { openWorker } from './worker.js'

const ADDRESSES = 200

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @returns {Promise<[boolean, string][]>}
 */
export async function verify(browser, url) {
  const page = await openWorker(browser, url)
  const fragments = Array.from({ length: ADDRESSES }, (_, seed) =>
    formatScenario(randomScenario(1000 + seed)),
  )
  let [calls, wrong] = [0, 0]
  for (const fragment of [...fragments, ...PRESETS.map((preset) => preset.fragment)]) {
    const { scenario } = readScenario(scenarioAt(fragment).scenario)
    const here = await run(scenario)
    const { columns: there } = await page.ask({ text: fragment })
    for (const [i, column] of scenario.columns.entries()) {
      const mine = here?.[i]
      if (!mine) throw new Error('the run was ended')
      calls += mine.at.length
      const { different } = await replayed(scenario, column, mine)
      if (plain(mine) !== plain(there[i]) || different !== undefined) {
        wrong++
        console.log(`${fragment}: limits ${i + 1} differ`)
      }
    }
  }
  await page.close()
  return [
    [
      wrong === 0,
      `${ADDRESSES} random addresses and ${PRESETS.length} presets: ${calls} calls, ${wrong} limits differ`,
    ],
  ]
}

/** @param {unknown} result */
function plain(result) {
  return JSON.stringify(result, (_, value) => {
    if (ArrayBuffer.isView(value)) return Array.from(/** @type {Float64Array} */ (value), String)
    return typeof value === 'number' ? String(value) : value
  })
}

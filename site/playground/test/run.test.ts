import { PRESETS } from '../presets.js'
import { scenarioAt } from '../address.js'
import { readScenario } from '../scenario.js'
import { run } from '../run.js'

describe('a preset', () => {
  it.each(PRESETS.map((each) => [each.id, each] as const))('%s runs and keeps its promises', async (_, { fragment }) => {
    const opened = scenarioAt(fragment)
    expect(opened.problem).toBeUndefined()
    const { scenario, problems } = readScenario(opened.scenario)
    expect(problems).toEqual({})
    const results = (await run(scenario))!
    for (const { policies, totals } of results) {
      expect(totals.served).toBeGreaterThan(0)
      for (const { most, promise } of policies) expect(most).toBeLessThanOrEqual(promise)
    }
  })
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { Outcome } from './row.js'

interface Case {
  readonly ancestorTitles: readonly string[]
  readonly title: string
  readonly status: string
  readonly failureMessages: readonly string[]
}

/** Runs areas of the adapters' kit (packages/harness/src/adapters) on every adapter, in a Jest of its own. */
export async function adapterCases(areas: readonly string[]): Promise<Outcome> {
  const cases = await run(areas.join('|'))
  const adapters = [...new Set(cases.map(({ ancestorTitles }) => ancestorTitles[0]!))]
  const wrong: string[] = []
  let [passed, missing] = [0, 0]
  for (const adapter of adapters) {
    for (const area of areas) {
      const own = cases.filter(({ ancestorTitles: [on, of] }) => on === adapter && of === area)
      const passedHere = own.filter(({ status }) => status === 'passed').length
      if (passedHere === 0) wrong.push(`${adapter}: nothing about ${area}`)
      passed += passedHere
      missing += own.filter(({ title }) => title.includes('[n/a: ')).length
      const failed = own.filter(({ status }) => status === 'failed')
      wrong.push(...failed.map(({ title, failureMessages }) => `${adapter}: ${title}: ${failureMessages[0]}`))
    }
  }
  return {
    pass: adapters.length > 0 && wrong.length === 0,
    figure:
      `${passed} cases pass on ${adapters.join(', ')}; ${missing} that a framework has no setting for` +
      `${wrong[0] ? `; ${wrong.length} wrong: ${wrong[0]}` : ''}`,
  }
}

/** Runs the adapters' tests whose titles match, in a Jest of its own. Returns the result of each. */
async function run(titles: string): Promise<Case[]> {
  const jest = ['node_modules/jest/bin/jest.js', '--json', '--silent']
  const child = spawn(process.execPath, [...jest, '-t', titles, '--', 'test/kit.*\\.test\\.ts$'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [output] = await Promise.all([text(child.stdout), once(child, 'close')])
  const { testResults } = JSON.parse(output) as {
    readonly testResults: readonly { readonly assertionResults: readonly Case[]; readonly message: string }[]
  }
  const broken = testResults.find(({ assertionResults }) => assertionResults.length === 0)
  if (broken) throw new Error(broken.message)
  return testResults.flatMap(({ assertionResults }) => assertionResults)
}

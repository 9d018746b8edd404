import { conformance, type ConformanceOptions, type OpenStore } from '../../src/index.js'

const globals = { describe, it }

/** The environment variables of the kit. */
export interface Environment {
  readonly CONFORMANCE_RUNS?: string
  readonly CONFORMANCE_SEED?: string
}

/**
 * The tests that the kit declares for a store, by the titles above them, as 'gcra > keeps keys apart'. Of the test runner it has
 * `describe` and `it` alone, and of the variables of the kit those of `environment`.
 */
export function testsOf(
  openStore: OpenStore,
  options: ConformanceOptions = {},
  environment: Environment = {},
): ReadonlyMap<string, () => unknown> {
  const tests = new Map<string, () => unknown>()
  const above: string[] = []
  const inside = (title: string, declare: () => void): void => {
    above.push(title)
    declare()
    above.pop()
  }
  const collect = (title: string, run: () => unknown) =>
    void tests.set([...above.slice(1), title].join(' > '), run)
  const { CONFORMANCE_RUNS: _runs, CONFORMANCE_SEED: _seed, ...others } = process.env
  const before = process.env
  process.env = { ...others, ...environment }
  Object.assign(globalThis, { describe: inside, it: collect })
  try {
    conformance('tried', openStore, options)
  } finally {
    Object.assign(globalThis, globals)
    process.env = before
  }
  return tests
}

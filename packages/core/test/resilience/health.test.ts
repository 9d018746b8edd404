import { type Health, processHealth } from '../../src/resilience/failure.js'
import { StoreError } from '../../src/values/errors.js'
import { expectWarnings } from '@sluice/harness/warnings'

const MINUTE = 60_000
const failure = new StoreError('STORE_FORBIDDEN', 'WRONGPASS as the test says')

let now = 0
let warned: ReturnType<typeof expectWarnings>
beforeEach(() => {
  now = 0
  warned = expectWarnings([], { perhaps: ['STORE_DEGRADED', 'STORE_RECOVERED'] })
})

const made = (endpoint?: string) => processHealth(endpoint, () => now)
const codes = () => warned.map(({ code }) => code)

/** The store answers, for longer than single failures are apart. */
function recovers(warning: Health): void {
  now += 100
  warning.decided()
}

describe('an outage', () => {
  it('is a warning of the process with host and cause, and its end is one', () => {
    const warning = made('redis:6379')
    for (let i = 0; i < 3; i++) warning.degraded(failure)
    warning.decided()
    expect(warned).toEqual([
      {
        code: 'STORE_DEGRADED',
        message: 'the store at redis:6379 is not usable (forbidden): WRONGPASS as the test says',
      },
    ])
    recovers(warning)
    expect(warned.slice(1)).toEqual([
      { code: 'STORE_RECOVERED', message: 'the store at redis:6379 decides again' },
    ])
    expect(warning.outage).toBeUndefined()
  })

  it('is heard once a minute, and later than it began if it still lasts then', () => {
    const warning = made('redis:6379')
    warning.degraded(failure)
    recovers(warning)
    now = MINUTE - 1
    warning.degraded(failure)
    recovers(warning)
    now = MINUTE - 1
    warning.degraded(failure)
    expect(codes()).toEqual(['STORE_DEGRADED', 'STORE_RECOVERED'])
    now = MINUTE
    warning.degraded(failure)
    recovers(warning)
    expect(codes().slice(2)).toEqual(['STORE_DEGRADED', 'STORE_RECOVERED'])
  })

  it('of a store that has no endpoint is left to its limiters', () => {
    const warning = made()
    warning.degraded(failure)
    recovers(warning)
    expect(warned).toEqual([])
  })
})

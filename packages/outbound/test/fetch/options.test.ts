import { open, outcome, pass, refusal, URL_, useFakeTime } from './limited-fetch.js'
import { expectWarnings } from '@sluice/harness/warnings'

useFakeTime()

describe('options', () => {
  it.each([
    [{ limiter: undefined }, 'INVALID_OPTION'],
    [{ semaphore: {} }, 'INVALID_OPTION'],
    [{ key: 1 }, 'INVALID_OPTION'],
    [{ cost: '1' }, 'INVALID_OPTION'],
    [{ priority: '1' }, 'INVALID_OPTION'],
    [{ priority: NaN }, 'INVALID_OPTION'],
    [{ prefetch: 0 }, 'INVALID_OPTION'],
    [{ lateness: -1 }, 'INVALID_DURATION'],
    [{ maxQueue: 0 }, 'INVALID_OPTION'],
    [{ retries: 11 }, 'INVALID_OPTION'],
    [{ isRetryable: true }, 'INVALID_OPTION'],
    [{ onEvent: 'log' }, 'INVALID_OPTION'],
    [{ maxWait: '2d' }, 'INVALID_DURATION'],
    [{ maxHold: 0 }, 'INVALID_DURATION'],
  ])('%j that cannot work are refused while it is made', (options, code) => {
    expect(() => open(options as never)).toThrow(expect.objectContaining({ name: 'PolicyError', code }))
  })

  it('a listener that throws does not affect the call, and is one warning', async () => {
    const warned = expectWarnings(['LISTENER_FAILED'])
    const onEvent = () => {
      throw new Error('listener')
    }
    const { fetch } = open({ onEvent, retries: 0 }, () => refusal({ 'retry-after': '1' }))
    expect((await fetch(URL_)).status).toBe(429)
    outcome(fetch(URL_))
    await pass(1000)
    const message = "a client of limiter 'test': a listener of 'queued' threw: Error: listener"
    expect(warned).toEqual([{ code: 'LISTENER_FAILED', message }])
  })
})

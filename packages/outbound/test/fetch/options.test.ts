import { open, outcome, pass, refusal, URL_, useFakeTime } from './limited-fetch.js'

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

  it.each([
    ['ahead', "it is called 'prefetch'"],
    ['repeatable', "it is called 'isRetryable'"],
    [
      'minTime',
      'write limiter: createLimiter({ policies: [gcra({ limit: 1, window: minTime, burst: 1 })] })',
    ],
    ['maxConcurrent', 'write semaphore: createSemaphore({ limit })'],
    ['reservoir', 'write limiter: createLimiter({ policies: [...] })'],
    ['highWater', "it is called 'maxQueue'"],
    ['intervalCap', 'write limiter: createLimiter({ policies: [...] })'],
  ])('of a former version or another package are refused with what to write: %s', (former, replacement) => {
    const error = { code: 'INVALID_OPTION', message: `there is no option '${former}': ${replacement}` }
    expect(() => open({ [former]: 1 })).toThrow(expect.objectContaining(error))
  })

  it('that are not known are refused, unless they are undefined', () => {
    expect(() => open({ retry: 3 } as never)).toThrow(
      "there is no option 'retry': it is called 'retries', a number",
    )
    expect(() => open({ maxwait: '1s' } as never)).toThrow("there is no option 'maxwait'")
    expect(() => open({ maxwait: undefined } as never)).not.toThrow()
  })

  it('a listener that throws does not affect the call, and is one warning', async () => {
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const onEvent = () => {
      throw new Error('listener')
    }
    const { fetch } = open({ onEvent, retries: 0 }, () => refusal({ 'retry-after': '1' }))
    expect((await fetch(URL_)).status).toBe(429)
    outcome(fetch(URL_))
    await pass(1000)
    expect(warned.mock.calls).toEqual([
      [
        "a client of limiter 'test': a listener of 'held' threw: Error: listener",
        { type: 'SluiceWarning', code: 'LISTENER_FAILED' },
      ],
    ])
    warned.mockRestore()
  })
})

import { getEventListeners } from 'node:events'
import { evenly, open, outcome, pass, URL_, useFakeTime } from './limited-fetch.js'

useFakeTime()

describe('an abort', () => {
  it('rejects with the reason, gives the turn back, and sends nothing', async () => {
    const limiter = evenly()
    const { fetch, sent } = open({ limiter })
    await fetch(URL_)
    const controller = new AbortController()
    const aborted = outcome(fetch(URL_, { signal: controller.signal }))
    await pass(10)
    controller.abort(new Error('gone'))
    await pass(0)
    expect(aborted.error).toEqual(new Error('gone'))
    expect(sent).toHaveLength(1)
    expect((await limiter.peek('https://api.example')).retryAfterMs).toBe(90)
  })

  it('passes the booked turn to the next call in this process', async () => {
    const { fetch, at } = open({ limiter: evenly() })
    await fetch(URL_)
    const controller = new AbortController()
    outcome(fetch(URL_, { signal: controller.signal }))
    outcome(fetch(URL_))
    await pass(10)
    controller.abort(new Error('gone'))
    await pass(1000)
    expect(at()).toEqual([0, 100])
  })

  it('at the instant of the turn gives the turn back', async () => {
    const limiter = evenly()
    const { fetch, sent } = open({ limiter })
    await fetch(URL_)
    const controller = new AbortController()
    limiter.on('decision', () => controller.abort(new Error('gone')))
    outcome(fetch(URL_, { signal: controller.signal }))
    await pass(100)
    expect(sent).toHaveLength(1)
    expect((await limiter.peek('https://api.example')).retryAfterMs).toBe(0)
  })

  it('by the signal of a Request works too', async () => {
    const { fetch } = open({ limiter: evenly() })
    await fetch(URL_)
    const controller = new AbortController()
    const aborted = outcome(fetch(new Request(URL_, { signal: controller.signal })))
    await pass(10)
    controller.abort(new Error('gone'))
    await pass(0)
    expect(aborted.error).toBeDefined()
  })
})

describe('many calls on one signal', () => {
  it('add one listener, so that Node warns of no leak', async () => {
    const { fetch } = open({ limiter: evenly() })
    const controller = new AbortController()
    const calls = Array.from({ length: 20 }, () => outcome(fetch(URL_, { signal: controller.signal })))
    await pass(0)
    expect(getEventListeners(controller.signal, 'abort').length).toBeLessThanOrEqual(1)
    controller.abort(new Error('gone'))
    await pass(0)
    expect(calls.slice(1).map(({ error }) => error.message)).toEqual(Array.from({ length: 19 }, () => 'gone'))
  })

  it('leave no listener', async () => {
    const { fetch } = open({ limiter: evenly() })
    const controller = new AbortController()
    for (let i = 0; i < 3; i++) outcome(fetch(URL_, { signal: controller.signal }))
    await pass(1000)
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
  })
})

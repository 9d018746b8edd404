import { onSources } from '@sluice/harness/processes'
import { spawnSync } from 'node:child_process'
import { evenly, limiterOf, open, outcome, pass, sleep, useFakeTime } from './open-queue.js'

useFakeTime()

describe('pause', () => {
  it('starts no call until resume, then all in their order', async () => {
    const { add, at, names, queue, types } = open()
    for (const name of 'ab') add(name)
    await pass(50)
    queue.pause()
    queue.pause()
    add('c', { priority: 1 })
    expect([queue.isPaused, queue.size]).toEqual([true, 2])
    await pass(450)
    queue.resume()
    await pass(1000)
    expect([names(), at()]).toEqual(['acb', [0, 500, 600]])
    expect(types().filter((type) => ['paused', 'continued'].includes(type))).toEqual(['paused', 'continued'])
  })

  it('returns booked turns', async () => {
    const limiter = limiterOf(evenly())
    const { add, queue } = open({ limiter })
    for (const name of 'abc') add(name)
    await pass(50)
    queue.pause()
    await pass(50)
    expect(await limiter.peek('default')).toMatchObject({ retryAfterMs: 0 })
  })

  it('does not stop maxWait', async () => {
    const { add, queue } = open()
    queue.pause()
    const call = add('a', { maxWait: 200 })
    await pass(200)
    expect(call.error).toMatchObject({ reason: 'paused' })
  })

  it('of one queue does not stop another one on the same limiter', async () => {
    const limiter = limiterOf(evenly())
    const [one, other] = [open({ limiter }), open({ limiter })]
    one.add('a')
    one.add('b')
    await pass(0)
    one.queue.pause()
    other.add('c')
    await pass(1000)
    expect([one.names(), other.names()]).toEqual(['a', 'c'])
    expect(other.at()).toEqual([100])
  })
})

describe('a call without await', () => {
  const IMPORTS = `
    import { createSemaphore } from '@sluice/core'
    import { createQueue } from '@sluice/outbound'
    const queue = createQueue({ semaphore: createSemaphore({ limit: 1 }) });`
  const runs = (code: string) =>
    spawnSync(process.execPath, [...onSources(), '--input-type=module', '--eval', IMPORTS + code], {
      encoding: 'utf8',
    })

  it('that clear() rejects is no unhandled rejection', () => {
    const { status, stderr } = runs(`
      queue.pause()
      queue.run(() => 1)
      queue.run(() => 2, { timeout: 100 })
      queue.wrap(() => 3)()
      queue.clear()
      queue.on('queued', () => queue.clear())
      queue.run(() => 4)
      queue.run(() => 5, { timeout: 100 })`)
    expect([status, stderr]).toEqual([0, ''])
  })

  it.each([
    ['that fails', 'queue.run(() => Promise.reject(new Error("lost")))'],
    [
      'that fails while clear() rejects others',
      'queue.run(() => Promise.reject(new Error("lost"))); queue.run(() => 1); queue.clear(); await queue.onIdle(); queue.run(() => Promise.reject(new Error("lost")))',
    ],
    ['that close() rejects', 'queue.pause(); queue.run(() => 1); queue.close()'],
  ])('%s is still one', (_, code) => {
    const { status, stderr } = runs(code)
    expect(status).toBe(1)
    expect(stderr).toMatch(/lost|RateLimitExceededError/)
  })
})

describe('clear and close', () => {
  it('clear rejects waiting calls, and no other', async () => {
    const { add, queue, names, events } = open({}, 300)
    const calls = Array.from('abc').map((name) => add(name))
    await pass(50)
    expect(queue.clear()).toBe(2)
    add('d')
    await pass(1000)
    expect(calls.map(({ value, error }) => value ?? error.reason)).toEqual(['a', 'cleared', 'cleared'])
    expect(names()).toBe('ad')
    expect(events.filter(({ type }) => type === 'denied')).toHaveLength(2)
  })

  it('clear rejects the newest call too where a listener of its event calls it', async () => {
    const { add, queue, names } = open({}, 300)
    const cleared: number[] = []
    queue.on('queued', () => queue.size === 2 && cleared.push(queue.clear()))
    const calls = [add('a')]
    await pass(0)
    calls.push(add('b'), add('c'))
    await pass(1000)
    expect(cleared).toEqual([2])
    expect(calls.map(({ value, error }) => value ?? error.reason)).toEqual(['a', 'cleared', 'cleared'])
    expect(names()).toBe('a')
  })

  it('close rejects waiting and later calls, and waits for the call under way', async () => {
    const { add, queue } = open({}, 300)
    const [running, waiting] = [add('a'), add('b')]
    await pass(50)
    const closed = outcome(queue.close().then(() => 'closed'))
    const late = add('c')
    await pass(0)
    expect([waiting.error.reason, late.error.reason, closed.value]).toEqual(['closed', 'closed', undefined])
    await pass(250)
    expect([running.value, closed.value]).toEqual(['a', 'closed'])
  })

  it('close with drain makes waiting calls first, also those of a paused queue', async () => {
    const { add, queue, names } = open()
    for (const name of 'abc') add(name)
    queue.pause()
    const closed = outcome(queue.close({ drain: true }).then(() => 'closed'))
    await pass(0)
    expect(add('d')).toEqual({})
    await pass(1000)
    expect([names(), closed.value]).toEqual(['abc', 'closed'])
  })

  it('close with drain retries failed calls, and close without does not', async () => {
    for (const drain of [true, false]) {
      const { queue } = open({ retry: () => 10 })
      let calls = 0
      const call = outcome(
        queue.run(async () => {
          await sleep(50)
          if (++calls === 1) throw new Error('once')
        }),
      )
      await pass(20)
      outcome(queue.close({ drain }))
      await pass(1000)
      expect([calls, call.error?.message]).toEqual(drain ? [2, undefined] : [1, 'once'])
    }
  })
})

describe('onIdle', () => {
  it('resolves when no call waits, runs, or is to be retried', async () => {
    const { queue } = open({ retry: (_, attempt) => attempt < 3 && 50 })
    await queue.onIdle()
    outcome(queue.run(() => Promise.reject(new Error('no'))))
    const idle = outcome(queue.onIdle().then(() => performance.now()))
    const start = performance.now()
    await pass(1000)
    expect(Math.round(idle.value! - start)).toBe(200)
  })
})

import { createSemaphore } from '@sluice/core'
import { evenly, limiterOf, open, outcome, pass, useFakeTime } from './open-queue.js'
import { expectWarnings } from '@sluice/harness/warnings'

useFakeTime()

describe('events', () => {
  it('report every state of a call', async () => {
    const { add, queue, events } = open({ retry: (_, attempt) => attempt < 2 && 0 }, 30)
    add('a')
    add('b')
    outcome(queue.run(() => Promise.reject(new Error('no')), { key: 'k', priority: 2 }))
    await pass(1000)
    const of = (key: string) => events.filter((event) => 'key' in event && event.key === key)
    expect(of('k').map(({ type }) => type)).toEqual([
      'queued',
      'started',
      'retried',
      'queued',
      'waited',
      'started',
      'failed',
    ])
    const every = { queue: 'test', limiter: 'test', key: 'k', cost: 1, priority: 2 }
    expect(of('k').map((event) => ({ ...event, ...every }))).toEqual(of('k'))
    expect(of('k')[4]).toMatchObject({ type: 'waited', decision: { allowed: true, limiter: 'test' } })
    expect(of('k').at(-1)).toMatchObject({ attempt: 2, error: new Error('no') })
    expect(of('default').map(({ type }) => type)).toEqual([
      'queued',
      'queued',
      'started',
      'done',
      'waited',
      'started',
      'done',
    ])
    expect(of('default').at(-1)).toMatchObject({ attempt: 1, runMs: 30 })
    expect(events.at(-1)).toEqual({ type: 'idle', queue: 'test', limiter: 'test' })
  })

  it.each(['retry', 'pauseOf', 'isRefusal'])('have the end of a call of which %s throws', async (hook) => {
    const mistake = new Error('mistake')
    const { queue, types, events } = open({
      [hook]: () => {
        throw mistake
      },
    })
    outcome(queue.run(() => Promise.reject(new Error('no'))))
    await pass(0)
    expect(types()).toEqual(['queued', 'empty', 'started', 'failed', 'idle'])
    expect(events).toContainEqual(expect.objectContaining({ type: 'failed', error: mistake }))
  })

  it('have listeners by type, which can be removed', async () => {
    const { add, queue } = open()
    const done: string[] = []
    const end = queue.on('done', ({ key }) => done.push(key))
    add('a')
    await pass(0)
    end()
    add('b')
    await pass(1000)
    expect(done).toEqual(['default'])
  })

  it.each<[string, () => void]>([
    [
      'throws',
      () => {
        throw new Error('oops')
      },
    ],
    ['rejects', () => Promise.reject(new Error('oops'))],
  ])('warn once where a listener %s, and affect neither calls nor other listeners', async (_, listener) => {
    const warned = expectWarnings(['LISTENER_FAILED'])
    const { add, queue, names } = open({ name: 'jobs', onEvent: listener })
    const done: string[] = []
    queue.on('done', listener)
    queue.on('done', ({ queue: name, key }) => done.push(`${name} ${key}`))
    for (const name of 'ab') add(name)
    await pass(1000)
    expect([names(), done]).toEqual(['ab', ['jobs default', 'jobs default']])
    const message = expect.stringMatching(/^queue 'jobs': a listener of '\w+' threw: Error: oops$/)
    expect(warned).toEqual([{ code: 'LISTENER_FAILED', message }])
  })

  it.each([
    ['its own name', { name: 'jobs', limiter: limiterOf(evenly()) }, 'jobs', 'test'],
    ['that of its limiter', { limiter: limiterOf(evenly()) }, 'test', 'test'],
    ['that of its semaphore', { semaphore: createSemaphore({ name: 'few', limit: 1 }) }, 'few', undefined],
  ])('all have a type and the name of the queue: %s', async (_, options, queue, limiter) => {
    expectWarnings(['CLOCK_FAKED']) // the options were made on the real one
    const { add, events, types, queue: made } = open(options)
    add('a')
    await pass(0)
    made.pause()
    made.resume()
    expect(types()).toEqual(['queued', 'empty', 'started', 'done', 'idle', 'paused', 'continued'])
    expect(events.map((event) => [event.queue, event.limiter])).toEqual(types().map(() => [queue, limiter]))
    expect(made.name).toBe(queue)
  })
})

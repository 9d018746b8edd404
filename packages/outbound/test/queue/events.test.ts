import { open, outcome, pass, useFakeTime } from './open-queue.js'

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
    const every = { limiter: 'test', key: 'k', cost: 1, priority: 2 }
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
    expect(events.at(-1)).toEqual({ type: 'idle', limiter: 'test' })
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
})

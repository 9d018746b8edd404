import { createLimiter, fixedWindow } from '@sluice/core'
import { createQueue, limitFetch } from '../src/index.js'

it("hands the limiter's 'nearing' on, once to each listener of a client or a queue", async () => {
  const limiter = createLimiter({
    name: 'api',
    policies: [fixedWindow({ limit: 4, window: '1d', name: 'daily' })],
    nearing: 0.5,
  })
  const seen: object[] = []
  const client = limitFetch(async () => new Response('ok'), {
    limiter,
    key: () => 'k',
    onEvent: (event) => void (event.type === 'nearing' && seen.push(event)),
  })
  const queue = createQueue({ name: 'jobs', limiter })
  queue.on('nearing', (event) => void seen.push(event))
  for (let i = 0; i < 3; i++) await (await client('https://api.example/')).text()
  const crossing = {
    type: 'nearing',
    limiter: 'api',
    key: 'k',
    policy: 'daily',
    share: 0.5,
    decidedBy: 'memory',
  }
  expect(seen).toMatchObject([crossing, { ...crossing, queue: 'jobs' }])
  expect(seen).toHaveLength(2)
})

it('takes its listener from the limiter once the last of the queue is removed', async () => {
  const limiter = createLimiter({
    name: 'api',
    policies: [fixedWindow({ limit: 4, window: '1d' })],
    nearing: 0.5,
  })
  const removed = jest.fn()
  const on = limiter.on.bind(limiter)
  jest.spyOn(limiter, 'on').mockImplementation((...listener) => {
    const remove = on(...listener)
    return () => {
      removed()
      remove()
    }
  })
  const queue = createQueue({ name: 'jobs', limiter })
  const seen: string[] = []
  const remove = ['one', 'other'].map((id) =>
    queue.on('nearing', ({ key }) => void seen.push(`${id} ${key}`)),
  )
  await limiter.consume('a', { cost: 2 })
  remove[0]!()
  await limiter.consume('b', { cost: 2 })
  expect(removed).not.toHaveBeenCalled()
  remove[1]!()
  expect(removed).toHaveBeenCalled()
  await limiter.consume('c', { cost: 2 })
  queue.on('nearing', ({ key }) => void seen.push(`again ${key}`))
  await limiter.consume('d', { cost: 2 })
  expect(seen).toEqual(['one a', 'other a', 'other b', 'again d'])
})

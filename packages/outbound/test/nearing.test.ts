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

import { createLimiter, gcra, memoryStore } from '@sluice/core'
import * as promClient from 'prom-client'
import { fleetTopKeys, observe, topKeys } from '../src/index.js'

const limiter = createLimiter({ policies: [gcra({ limit: 10, window: '1m' })] })
const registry = new promClient.Registry()

it.each([
  ['observe', 'tags', 'tag', () => observe(limiter, { prometheus: promClient, registry, tags: 1 } as never)],
  ['topKeys', 'sizes', 'size', () => topKeys(limiter, { sizes: 1 } as never)],
  [
    'fleetTopKeys',
    'deadlines',
    'deadline',
    () => fleetTopKeys(memoryStore(), 'a', { deadlines: 1 } as never),
  ],
])('%s refuses an option that it does not have, %s, and suggests %s', async (what, wrong, name, take) => {
  await expect((async () => take())()).rejects.toMatchObject({
    name: 'PolicyError',
    code: 'INVALID_OPTION',
    message: expect.stringContaining(`there is no option '${wrong}' of ${what}: did you mean '${name}'?`),
  })
})

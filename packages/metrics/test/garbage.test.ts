import { createLimiter, createSemaphore, gcra } from '@sluice/core'
import { collect } from '@sluice/harness/figures'
import { createQueue } from '@sluice/outbound'
import { setImmediate } from 'node:timers/promises'
import { observe } from '../src/index.js'
import { READERS } from './readers.js'

const policies = [gcra({ limit: 10, window: '1s' })]
const MAKE = [
  ['limiter', () => createLimiter({ policies })],
  ['semaphore', () => createSemaphore({ limit: 1 })],
  ['queue', () => createQueue({ semaphore: createSemaphore({ limit: 1 }) })],
] as const

describe.each(READERS)('with %s', (_, openReader) => {
  it.each(MAKE)('a %s that is closed is not kept in memory', async (_kind, make) => {
    const reader = openReader()
    const observed: WeakRef<object>[] = []
    async function useOnce() {
      const one = make()
      observe(one, reader.options)
      await one.close()
      observed.push(new WeakRef(one))
    }
    await useOnce()
    for (let i = 0; i < 3; i++) {
      await reader.read('waiting')
      await setImmediate()
      collect()
    }
    expect(observed.map((each) => each.deref())).toEqual([undefined])
    await reader.close()
  })
})

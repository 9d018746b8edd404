import { backOffMs } from '../../../src/stores/redis/connection/opened.js'

it('a connection tries again at once, and after any number of failures within 200 ms', () => {
  const waits = Array.from({ length: 10_000 }, (_, i) => backOffMs(i + 1))
  expect(waits[0]).toBeLessThanOrEqual(20)
  expect(Math.max(...waits)).toBeLessThanOrEqual(200)
})

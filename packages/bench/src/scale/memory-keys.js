// How a memory store does with so many keys, in a fresh process: CPU of a decision, and bytes a key beside its text.
import { createLimiter, gcra, memoryStore } from '@sluice/core'
import { bytesInUse } from '@sluice/harness/figures'
import { answering } from '../processes/child.js'

const CALLS = 500_000
/** A prime: every key is met as often as the next, and none beside its neighbour. */
const STRIDE = 7919

answering((/** @type {{ keys: number }} */ { keys }) => {
  const before = bytesInUse()
  const names = Array.from({ length: keys }, (_, i) => `user:${i}`)
  const text = bytesInUse()
  // In debt for 43 s after a call: a key whose allowance is full again need not be kept.
  const policies = [gcra({ limit: 2000, window: '1d' })]
  const limiter = createLimiter({ name: 'scale', policies, store: memoryStore({ maxKeys: 2 ** 23 }) })
  const call = (/** @type {number} */ i) => {
    const decision = limiter.decide(/** @type {string} */ (names[(i * STRIDE) % keys]))
    if (!('allowed' in decision) || !decision.allowed) throw new Error(`call ${i} was not admitted at once`)
  }
  for (let i = 0; i < keys; i++) call(i)
  const bytes = (bytesInUse() - text) / keys
  for (let i = 0; i < CALLS; i++) call(i)
  const start = process.cpuUsage()
  for (let i = 0; i < CALLS; i++) call(i)
  const { user, system } = process.cpuUsage(start)
  return { keys, cpuNs: (1000 * (user + system)) / CALLS, bytes, textBytes: (text - before) / keys }
})

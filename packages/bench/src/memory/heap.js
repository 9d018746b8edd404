// The memory that a million keys take in a fresh process, in bytes a key: the objects of the heap and what typed arrays hold
// outside of it, without the keys' own text.
import { bytesInUse } from '@sluice/harness/figures'
import { answering } from '../processes/child.js'
import { contenderNamed } from './contenders.js'

const open = contenderNamed(process.argv[2] ?? '')
const KEYS = 1_000_000
const A_DAY = { limit: 100, windowMs: 86_400_000 } // so that no key is full again before the end

/** Objects that must not be collected before it has been weighed. @type {unknown[]} */
const held = []

answering(async () => {
  await open(A_DAY) // loads its modules
  const before = bytesInUse()
  const { call, allowed } = await open(A_DAY)
  held.push(call)
  for (let i = 0; i < KEYS; i++) {
    if (!allowed(await call(`user:${i}`))) throw new Error(`the first call of key ${i} was denied`)
  }
  const all = bytesInUse() - before
  const start = bytesInUse()
  held.push(Array.from({ length: KEYS }, (_, i) => `user:${i}`))
  const text = bytesInUse() - start - KEYS * POINTER
  return (all - text) / KEYS
})

const POINTER = 8

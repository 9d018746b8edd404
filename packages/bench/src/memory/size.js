// Bytes a key in the memory store, by algorithm: npm run bench -- memory-size [KEYS]
// Counts the objects of the heap and what typed arrays hold outside of it, the keys' own text included and apart.
import { createLimiter, gcra, memoryStore, slidingWindow } from '@sluice/core'
import { execFileSync } from 'node:child_process'
import { bytesInUse } from '@sluice/harness/figures'
import { measured } from '../algorithms.js'

const keys = Number(process.argv[2] ?? 1_000_000)
const only = process.argv[3]
const daily = { limit: 100, window: 86_400_000 } // so that no key is full again before the end

/** @type {Record<string, readonly import('@sluice/core').Policy[] | undefined>} */
const contenders = {
  'the keys alone, in an array': undefined,
  ...Object.fromEntries(
    measured.map(({ label, isLog, policy }) => [isLog ? `${label}, 1 unit used` : label, [policy(daily)]]),
  ),
  'sliding window, 60 buckets': [slidingWindow({ ...daily, buckets: 60 })],
  'three policies (gcra)': [
    gcra(daily),
    gcra({ limit: 1000, window: '1h' }),
    gcra({ limit: 5000, window: '1d' }),
  ],
}

if (only === undefined) {
  console.log(`bytes a key, ${keys.toLocaleString('en')} keys 'user:N', each line in a process of its own`)
  for (const name of Object.keys(contenders)) {
    console.log(
      execFileSync(process.execPath, [import.meta.filename, String(keys), name], {
        encoding: 'utf8',
      }).trimEnd(),
    )
  }
} else {
  const before = bytesInUse()
  const held = fill(contenders[only])
  const bytes = (bytesInUse() - before) / keys
  console.log(`${only.padEnd(36)} ${bytes.toFixed(0).padStart(5)}`)
  if ('close' in held) await held.close()
}

/** @param {readonly import('@sluice/core').Policy[] | undefined} policies */
function fill(policies) {
  if (!policies) return Array.from({ length: keys }, (_, i) => `user:${i}`)
  const limiter = createLimiter({ name: 'memory', store: memoryStore({ maxKeys: 2 ** 23 }), policies })
  for (let i = 0; i < keys; i++) void limiter.decide(`user:${i}`)
  return limiter
}

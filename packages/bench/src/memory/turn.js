// One contender in a fresh process: whether it decides rightly, or a turn in a round, calls a second in each workload.
import { checkDecisions } from '../contender.js'
import { answering } from '../processes/child.js'
import { contenderNamed } from './contenders.js'
import { drive } from './drive.js'
import { useOthers } from './mixture.js'
import { workloads } from './workloads.js'

const name = process.argv[2] ?? ''
const open = contenderNamed(name)

/** How long each is called in every workload, in milliseconds of CPU: to warm up, and to be measured. */
const WARM_UP_MS = 250
const MEASURED_MS = 150

answering(async (/** @type {{ what: 'check' | 'measure' | 'measure mixed' }} */ { what }) => {
  if (what === 'check') return checkDecisions(name, open)
  if (what === 'measure mixed') await useOthers(name, open)
  return measure()
})

async function measure() {
  /** @type {Record<string, number>} */
  const perSecond = {}
  for (const [title, { limit, keys, warm }] of Object.entries(workloads)) {
    const contender = await open(limit)
    if (contender.hotKeyOnly && keys > 1) continue
    if (warm) {
      const names = keysNamed('user', keys)
      await drive(contender, names, { calls: keys })
      await drive(contender, names, { ms: WARM_UP_MS })
      perSecond[title] = await drive(contender, names, { ms: MEASURED_MS })
    } else {
      await drive(contender, keysNamed('early', keys), { calls: keys })
      perSecond[title] = await drive(contender, keysNamed('new', keys), { calls: keys })
    }
  }
  return perSecond
}

/**
 * @param {string} prefix
 * @param {number} count
 */
function keysNamed(prefix, count) {
  return Array.from({ length: count }, (_, i) => `${prefix}:${i}`)
}

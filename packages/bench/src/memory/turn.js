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

/**
 * The calls a second of the contender in each workload. A `warm` one is measured on keys that it was called for before; another one on
 * keys that nobody has seen, once as many other keys have had the code compiled.
 */
async function measure() {
  /** @type {Record<string, number>} */
  const perSecond = {}
  for (const [title, { limit, keys, warm, order }] of Object.entries(workloads)) {
    const opened = await open(limit)
    const contender = order === 'fresh' ? withFreshStrings(opened) : opened
    if (contender.hotKeyOnly && keys > 1) continue
    if (warm) {
      const names = order === 'shuffled' ? shuffled(keysNamed('user', keys)) : keysNamed('user', keys)
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

/** @param {import('../contender.js').Contender} contender @returns {import('../contender.js').Contender} */
function withFreshStrings(contender) {
  return { ...contender, call: (key) => contender.call('ip:' + key) }
}

/** The same order in every process. @param {string[]} names */
function shuffled(names) {
  let random = 1
  for (let i = names.length - 1; i > 0; i--) {
    random = (Math.imul(random, 1664525) + 1013904223) >>> 0
    const j = Math.floor((random / 2 ** 32) * (i + 1))
    ;[names[i], names[j]] = [/** @type {string} */ (names[j]), /** @type {string} */ (names[i])]
  }
  return names
}

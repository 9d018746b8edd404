// Groups of a Cluster: calls of a group travel in one script, those of a store without groups one by one.
import { median } from '@sluice/harness/figures'
import { ratioGoal } from '../figures/goals.js'
import { inRounds } from '../figures/rounds.js'
import { short } from '../figures/table.js'
import { startCluster } from '../processes/redis-servers.js'
import { startClient } from '../redis/clients.js'
import { connect } from '../redis/connection.js'
import { limitOf } from '../redis/loads.js'
import { barsOf } from '../redis/panels.js'
import { cpuOf, scriptsRun } from '../redis/server-cpu.js'

/** @typedef {import('../redis/connection.js').Client} Client */
/** @typedef {import('../redis/measure.js').Turn & { batch: number }} Turn `batch`: decisions a script. */

const MASTERS = 3
const NONE = 'Sluice'
const names = [NONE, 'Sluice, 16 groups', 'Sluice, 64 groups']
const LOAD = { keys: 10_000, calls: 20_000 }
const CALLERS = [64, 256, 1024]

/** By callers: how many groups are judged. */
const JUDGED = /** @type {const} */ ([
  [256, 'Sluice, 16 groups'],
  [1024, 'Sluice, 64 groups'],
])

/** @type {import('../report.js').Part} */
export const cluster = {
  name: 'cluster',
  title: 'Cluster',
  packages: ['ioredis'],
  notes: [
    `A Cluster of ${MASTERS} masters without persistence on loopback; each contender is a process with one ioredis Cluster client. GCRA, 10,000 keys, no call is denied, \`denialCache: false\`, a deadline of 10 s. Callers ask again as soon as they are answered. CPU of Redis is that of all masters. Masters and the client share the cores of one machine.`,
  ],
  async measure({ rounds, wanted, goalsOnly, say }) {
    const servers = await startCluster(MASTERS)
    const controls = servers.masters.map(connect)
    const clients = new Map(
      names
        .filter(wanted)
        .map((name) => [name, startClient(name, limitOf(name, LOAD.keys), servers.masters)]),
    )
    /** @param {(control: Client) => Promise<number>} figureOf */
    const all = async (figureOf) =>
      (await Promise.all(controls.map(figureOf))).reduce((sum, one) => sum + one, 0)
    /** @type {Map<number, Map<string, Turn[]>>} */
    const turns = new Map()
    try {
      for (const callers of CALLERS) {
        if (goalsOnly && !JUDGED.some(([judged]) => judged === callers)) continue
        const seen = await inRounds([...clients.keys()], { rounds, warmUp: true }, async (name) => {
          const [us, scripts] = [await all(cpuOf), await all(scriptsRun)]
          const figures = await clients.get(name)?.ask({ ...LOAD, callers })
          const serverUs = ((await all(cpuOf)) - us) / figures.calls
          return { ...figures, serverUs, batch: figures.calls / ((await all(scriptsRun)) - scripts) }
        })
        turns.set(callers, seen)
        say(`${callers} callers: measured`)
      }
    } finally {
      for (const client of clients.values()) await client.stop()
      for (const control of controls) control.disconnect()
      await servers.stop()
    }
    return { goals: goalsOf(turns), tables: [...turns].map(tableOf), panels: [...turns].map(panelOf) }
  },
}

/** @param {Map<number, Map<string, Turn[]>>} turns */
function goalsOf(turns) {
  return JUDGED.flatMap(([callers, name]) => {
    /** @returns {[name: string, figures: number[][]]} */
    const of = (/** @type {string} */ who, /** @type {keyof Turn} */ figure, scale = 1) => [
      who,
      [(turns.get(callers)?.get(who) ?? []).map((turn) => turn[figure] * scale)],
    ]
    const path = `Cluster, ${callers} callers, ${name.replace('Sluice, ', '')}`
    return [
      ratioGoal(path, of(name, 'perSecond', 1e-3), of(NONE, 'perSecond', 1e-3), {
        atLeast: 1.8,
        unit: 'k/s',
        shown: 'no groups',
      }),
      ratioGoal(`${path}, CPU of Redis`, of(name, 'serverUs'), of(NONE, 'serverUs'), {
        atMost: 0.5,
        unit: 'us',
        shown: 'no groups',
      }),
    ].map((goal) => ({ ...goal, contenders: [name, NONE] }))
  })
}

/** @param {[callers: number, byName: Map<string, Turn[]>]} load */
function tableOf([callers, byName]) {
  return {
    title: titleOf(callers),
    columns: [
      '',
      'decisions/s',
      'p99, ms',
      'CPU of Redis, us',
      'CPU of the client, us',
      'decisions a script',
    ],
    rows: [...byName].map(([name, each]) => [
      name,
      .../** @type {const} */ (['perSecond', 'p99', 'serverUs', 'cpuUs', 'batch']).map((figure) =>
        short(median(each.map((turn) => turn[figure]))),
      ),
    ]),
  }
}

/** @param {[callers: number, byName: Map<string, Turn[]>]} load @returns {import('../figures/chart.js').Panel} */
function panelOf([callers, byName]) {
  const bars = barsOf(byName, (name) => (name === NONE ? 'peer' : 'sluice'))
  return { title: titleOf(callers), about: 'decisions a second', bars }
}

/** @param {number} callers */
function titleOf(callers) {
  return `${callers.toLocaleString('en')} callers`
}

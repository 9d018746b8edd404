import { machineStore } from '@sluice/machine'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { msToEnd } from '@sluice/harness/processes'
import { startCluster, startRedis } from '@sluice/harness/redis'
import type { Moment } from '../workers/ending.js'
import type { Outcome, Row } from '../row.js'

/** A process ends by itself soon after it has closed what it made, whatever it is in the middle of. */
export const row: Row = { number: 27, fault: 'shutdown', timed: true, run: shutDown }

const BAR_MS = 100
const PROGRAM = 'packages/faults/src/workers/ending.ts'
const NO_SERVER = { host: '127.0.0.1', port: 1 }
const MOMENTS: readonly Moment[] = ['nothing', 'a wait', 'calls']

/**
 * Ends processes at many moments, while stores answer and while they stand still. Passes if each ends within the bar after
 * close().
 */
async function shutDown(): Promise<Outcome> {
  const [server, cluster] = await Promise.all([startRedis(), startCluster({ masters: 3 })])
  const redis = { host: server.host, port: server.port }
  const nodes = { cluster: cluster.masters.map(({ host, port }) => ({ host, port })) }
  const freeze = () => [server, ...cluster.masters].forEach((node) => node.pause())
  const thaw = () => [server, ...cluster.masters].forEach((node) => node.resume())

  const endings: [string, number][] = []
  const measure = async (what: string, moment: Moment, where?: object, onReady = () => {}) => {
    endings.push([
      `${what}, ${moment}`,
      await msToEnd(PROGRAM, [moment, ...(where ? [JSON.stringify(where)] : [])], onReady),
    ])
    thaw()
  }
  for (const moment of MOMENTS) await measure('memory', moment)
  for (const [what, where] of [
    ['Redis', redis],
    ['a Cluster', nodes],
  ] as const) {
    for (const moment of MOMENTS) await measure(what, moment, where)
    for (const moment of ['a wait', 'calls', 'an outage'] as const) {
      await measure(`${what} stopped`, moment, where, freeze)
    }
  }
  for (const moment of ['nothing', 'calls', 'an outage'] as const) {
    await measure('no server there', moment, NO_SERVER)
    await measure('no Cluster there', moment, { cluster: [NO_SERVER] })
  }
  const machine = { name: 'ending', folder: mkdtempSync(join(tmpdir(), 'sluice-ending-')) }
  for (const moment of MOMENTS) await measure('the one that serves', moment, { machine })
  const served = machineStore({ ...machine, serve: true })
  await served.ready()
  for (const moment of MOMENTS) await measure('one that is served', moment, { machine })
  await served.close()
  for (const moment of ['nothing', 'calls', 'an outage'] as const) {
    await measure('no process serves', moment, { machine: { ...machine, serve: false } })
  }
  await Promise.all([server.stop(), cluster.stop()])
  rmSync(machine.folder, { recursive: true })

  const [slowest, longest] = endings.reduce((a, b) => (b[1] > a[1] ? b : a))
  return {
    pass: longest <= BAR_MS,
    figure: `${endings.length} endings: ended ${longest.toFixed(0)} ms after close() at most (bar ${BAR_MS}; ${slowest})`,
  }
}

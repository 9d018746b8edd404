// Processes of one machine that share their limits: through machineStore, through Redis, and through the primary process of
// rate-limiter-flexible's cluster limiter. For the first and the last the primary keeps the state. Prints decisions a second of all workers and the CPU of one decision, wherever it
// was used; about a minute: npm run bench -- machine
import cluster from 'node:cluster'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { machineStore } from '@sluice/machine'
import { Redis } from 'ioredis'
import { RateLimiterClusterMaster } from 'rate-limiter-flexible'
import { inRounds, mediansOf } from '../figures/rounds.js'
import { markdownOf, short } from '../figures/table.js'
import { startRedis } from '../processes/redis-servers.js'
import { cpuOf } from '../redis/server-cpu.js'

/** @typedef {import('node:cluster').Worker} Worker */
/** @typedef {{ decisions: number, cpuUs: number, p50Us: number }} Measured */
/** @typedef {{ perSecond: number, workerUs: number, elsewhereUs: number, p50Us: number }} Round */

const WORKERS = 2
const ROUNDS = 5
const MS = 2000
const CONTENDERS = {
  machineStore: 'machine',
  redisStore: 'redis',
  'rate-limiter-flexible cluster': 'flexible',
}

const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
const server = await startRedis()
const redis = new Redis(server.port, server.host)
const served = machineStore({ name: 'machine', folder, serve: true })
await served.ready()
new RateLimiterClusterMaster()
cluster.setupPrimary({ exec: fileURLToPath(new URL('worker.js', import.meta.url)) })

console.log(`${WORKERS} workers of node:cluster, medians of ${ROUNDS} rounds\n`)
const columns = [
  '',
  'callers',
  'decisions a second',
  'worker CPU, us',
  'CPU elsewhere, us',
  'median latency, us',
]
/** @type {string[][]} */
const rows = []
for (const callers of [1, 64]) {
  const turns = await inRounds(Object.keys(CONTENDERS), { rounds: ROUNDS }, (title) =>
    measure(CONTENDERS[/** @type {keyof typeof CONTENDERS} */ (title)], callers),
  )
  for (const [title, all] of turns) {
    const { perSecond, workerUs, elsewhereUs, p50Us } = mediansOf(all)
    rows.push([title, String(callers), ...[perSecond, workerUs, elsewhereUs, p50Us].map(short)])
  }
}
console.log(markdownOf({ title: '', columns, rows }))
redis.disconnect()
await server.stop()
await served.close()
rmSync(folder, { recursive: true })

/** @param {string} kind @param {number} callers @returns {Promise<Round>} */
async function measure(kind, callers) {
  const env = { FOLDER: folder, REDIS: `redis://${server.host}:${server.port}`, KIND: kind }
  const workers = Array.from({ length: WORKERS }, () => cluster.fork(env))
  await Promise.all(workers.map(answer))
  const [own, theirs] = [process.cpuUsage(), await cpuOf(redis)]
  const measured = await Promise.all(
    workers.map((worker) => {
      worker.send({ callers, ms: MS })
      return answer(worker)
    }),
  )
  const { user, system } = process.cpuUsage(own)
  const elsewhere = user + system + (await cpuOf(redis)) - theirs
  await Promise.all(
    workers.map((worker) => {
      worker.process.kill('SIGKILL')
      return once(worker, 'exit')
    }),
  )
  const decisions = measured.reduce((sum, each) => sum + each.decisions, 0)
  return {
    perSecond: decisions / (MS / 1000),
    workerUs: measured.reduce((sum, each) => sum + each.cpuUs, 0) / decisions,
    elsewhereUs: elsewhere / decisions,
    p50Us: Math.max(...measured.map((each) => each.p50Us)),
  }
}

/** The messages of rate-limiter-flexible pass by here too. @param {Worker} worker @returns {Promise<Measured>} */
function answer(worker) {
  return new Promise((resolve, reject) => {
    worker.on('message', ({ bench }) => bench && resolve(bench))
    worker.on('exit', (code) => reject(new Error(`a worker ended with ${code}`)))
  })
}

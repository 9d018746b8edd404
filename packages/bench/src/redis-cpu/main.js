// The cost of a decision in Redis, beside other packages: npm run bench -- redis-cpu [ROUNDS]
// CPU inside Redis is what INFO commandstats says of EVALSHA, the commands inside of the script included. A decision is
// asked for when the one before has been answered; the contenders take turns in every round, so that a noisy machine
// is noisy for all of them. Quote the ratios.
import { monitor } from '@sluice/harness/redis'
import { inRounds } from '../figures/rounds.js'
import { startRedis } from '../processes/redis-servers.js'
import { connect } from '../redis/connection.js'
import { scriptTimeOf, serverVersion } from '../redis/server-cpu.js'
import { contenders } from './contenders.js'
import { KEYS } from './injected-time.js'
import { printBars, printTable } from './report.js'

/** @typedef {import('./contenders.js').Contender} Contender */

const rounds = Number(process.argv[2] ?? 9)
const CALLS = 1000
const callers = Array.from({ length: KEYS }, (_, i) => `user:${i}`)

const server = await startRedis()
const redis = connect(server)
try {
  const subjects = new Map(Object.entries(contenders).map(([name, open]) => [name, open(redis, name)]))
  /** @type {import('./report.js').Figure[]} */
  const figures = []
  for (const [name, subject] of subjects) figures.push({ name, ...(await sizeOf(subject)), us: [] })
  await redis.flushall()
  for (const { fill } of subjects.values()) for (const caller of callers) await fill?.(caller)
  const turn = (/** @type {string} */ name) => cpuOf(/** @type {Contender} */ (subjects.get(name)))
  const turns = await inRounds([...subjects.keys()], { rounds, warmUp: true }, turn)
  for (const figure of figures) figure.us = turns.get(figure.name) ?? []
  console.log(
    `Redis ${await serverVersion(redis)}, ${rounds} rounds of ${CALLS} decisions, CPU a decision in microseconds, medians`,
  )
  printTable(figures)
  process.exitCode = printBars(figures) ? 0 : 1
} finally {
  redis.disconnect()
  await server.stop()
}

/** Microseconds a decision. @param {Contender} subject */
function cpuOf(subject) {
  return scriptTimeOf(redis, async () => {
    for (let i = 0; i < CALLS; i++) await subject.call(callers[i % KEYS] ?? '')
    return CALLS
  })
}

/** Commands of clients a decision. @param {Contender} subject */
async function roundTripsOf(subject) {
  const watch = await monitor(server)
  const calls = 10
  for (let i = 0; i < calls; i++) await subject.call('user:0')
  const lines = await watch.stop()
  // Stores read the records of overrides beside, which are of no key.
  return lines.filter((line) => line.includes('user:0') && !/^\S+ \[\d+ lua\]/.test(line)).length / calls
}

/** The bytes that one caller has in Redis. @param {Contender} subject */
async function sizeOf(subject) {
  await redis.flushall()
  await subject.fill?.('user:0')
  await subject.call('user:0')
  return { bytes: await bytesInUse(), roundTrips: await roundTripsOf(subject) }
}

async function bytesInUse() {
  const keys = await redis.keys('*')
  const sizes = await Promise.all(keys.map((key) => redis.memory('USAGE', key, 'SAMPLES', 0)))
  return sizes.reduce((/** @type {number} */ sum, size) => sum + Number(size), 0)
}

// Shows that a machine store counts exactly, whoever starts the processes: npm run verify -- machine. Prints a line for each
// way of starting them. Exit 1 where one admits more or less than the limit.
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { ways } from './starting.js'

const PROCESSES = 4
const LIMIT = 1000
/** Of each process: together they call twice as often as the limit admits. */
const CALLS = (2 * LIMIT) / PROCESSES
const ROUNDS = 3
/** Milliseconds for one round. */
const LONGEST_MS = 60_000

const folder = mkdtempSync(join(tmpdir(), 'sluice-machine-'))
let wrong = 0
try {
  console.log(`${PROCESSES} processes, a limit of ${LIMIT}, ${PROCESSES * CALLS} calls, ${ROUNDS} rounds\n`)
  for (const [title, start] of Object.entries(ways)) {
    const admitted = []
    for (let round = 0; round < ROUNDS; round++) admitted.push(await play(start, `${title} ${round}`))
    const exact = admitted.every((count) => count === LIMIT)
    if (!exact) wrong++
    console.log(`${exact ? '✓' : '✗'} ${title.padEnd(32)} admitted ${admitted.join(', ')}`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exitCode = wrong === 0 ? 0 : 1

/**
 * How many calls were admitted by all of the processes, which begin at the same moment.
 * @param {import('./starting.js').Start} start
 * @param {string} name Of the store.
 */
async function play(start, name) {
  /** @type {import('node:net').Socket[]} */
  const sockets = []
  const server = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1')
  const signal = AbortSignal.timeout(LONGEST_MS)
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const env = { PORT: `${port}`, FOLDER: folder, NAME: name, LIMIT: `${LIMIT}`, CALLS: `${CALLS}` }
  const end = await start(env, PROCESSES)
  try {
    while (sockets.length < PROCESSES) await once(server, 'connection', { signal })
    await Promise.all(sockets.map((socket) => once(socket, 'data', { signal })))
    for (const socket of sockets) socket.write('go')
    const told = await Promise.all(sockets.map((socket) => once(socket, 'data', { signal })))
    return told.reduce((sum, [count]) => sum + Number(count), 0)
  } finally {
    // The processes end with their connections.
    const gone = sockets.map((socket) => text(socket))
    for (const socket of sockets) socket.end()
    await Promise.all(gone)
    server.close()
    await end()
  }
}

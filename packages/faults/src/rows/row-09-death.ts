import { redisStore } from '@sluice/core/redis'
import { connect } from 'node:net'
import { type Address, type RedisServer, startRedis, until } from '@sluice/harness/redis'
import { sitOut, together } from '../outage.js'
import type { Outcome, Row, Watch } from '../row.js'

/** Redis dies and comes back, or is not there when the service starts. */
export const row: Row = {
  number: 9,
  fault: 'death',
  timed: true,
  warnings: ['STORE_DEGRADED', 'STORE_RECOVERED'],
  run: die,
}

/**
 * Kills Redis under load, and starts a service without one. Passes if all calls are answered in time, and by Redis again soon
 * after it is back. `share` is the part of the full load, 0 to 1.
 */
async function die(share: number, watch?: Watch): Promise<Outcome> {
  const lastsMs = Math.max(500, 3000 * share)
  const server = await startRedis()
  const outcomes: Outcome[] = []
  const begin = () => server.kill()
  const end = () => restart(server)
  for (const title of ['SIGKILL', 'not there at start']) {
    if (title !== 'SIGKILL') await begin()
    const store = redisStore({ host: server.host, port: server.port })
    outcomes.push(await sitOut(store, { title, begin, end, lastsMs }, watch))
    await store.close()
  }
  await server.stop()
  return together(outcomes)
}

/** Starts a killed server again, and resolves when it takes connections. */
async function restart(server: RedisServer): Promise<void> {
  const started = server.restart()
  await until('the port to open', () => isOpen(server))
  void started.catch(() => {})
}

/** Whether something takes connections on a port. */
function isOpen({ host, port }: Address): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host)
    const tell = (open: boolean) => {
      socket.destroy()
      resolve(open)
    }
    socket.on('connect', () => tell(true))
    socket.on('error', () => tell(false))
  })
}

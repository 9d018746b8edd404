import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Address, command } from './command.js'
import { HOST, launch, type RedisServer, startRedis } from './redis-server.js'
import { roleOf, startReplica } from './replica.js'
import { LOG } from './server-process.js'
import { until } from './until.js'

export interface SentinelSetup {
  readonly sentinels: readonly RedisServer[]
  readonly masterName: string
  /** The one that is master now, and the other. */
  readonly master: RedisServer
  readonly replica: RedisServer
  /**
   * 'death' kills the master, 'planned' asks Sentinel to change the roles of two that live. Resolves when the replica
   * is master and every sentinel says so, and then `replica` is the old master: dead, or refusing writes. (Left alone,
   * Sentinel would let the latter accept writes for another 8 s.)
   */
  failover(how?: 'death' | 'planned'): Promise<void>
  stop(): Promise<void>
}

/** Starts a master, a replica and sentinels of which most must agree that the master is down. */
export async function startSentinel({
  sentinels: count = 1,
}: { sentinels?: 1 | 3 } = {}): Promise<SentinelSetup> {
  const started: RedisServer[] = []
  const keep = (server: RedisServer) => (started.push(server), server)
  const stop = async () => {
    await Promise.all(started.map((server) => server.stop()))
  }
  try {
    let master = keep(await startRedis())
    let replica: RedisServer = keep(await startReplica(master))
    const starts = Array.from({ length: count }, async (_, i) => keep(await startOne(master, i, count)))
    await Promise.allSettled(starts)
    const sentinels = await Promise.all(starts)
    await until('the sentinels to know each other and the replica', async () => {
      return (await Promise.all(sentinels.map((sentinel) => knowsAll(sentinel, count)))).every(Boolean)
    })
    return {
      sentinels,
      masterName: MASTER,
      get master() {
        return master
      },
      get replica() {
        return replica
      },
      async failover(how = 'death') {
        if (how === 'death') await master.kill()
        else await command(sentinels[0]!, 'SENTINEL', 'FAILOVER', MASTER)
        await until('the failover', () => isMaster(replica, sentinels))
        ;[master, replica] = [replica, master]
        if (how === 'planned') await command(replica, 'REPLICAOF', master.host, master.port)
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/**
 * Starts one sentinel of `count`, which watches the master. A sentinel keeps what it learns in its configuration file, so a restarted one goes on. The first notices a death after
 * 500 ms, each other 300 ms later: at the same moment, each would vote for itself and try again much later.
 */
function startOne(master: Address, index: number, count: number): Promise<RedisServer> {
  return launch((port, folder) => {
    const file = join(folder, 'sentinel.conf')
    const lines = [
      `bind ${HOST}`,
      `port ${port}`,
      `dir ${folder}`,
      `logfile ${LOG}`,
      `sentinel monitor ${MASTER} ${master.host} ${master.port} ${Math.ceil((count + 1) / 2)}`,
      `sentinel down-after-milliseconds ${MASTER} ${500 + 300 * index}`,
      `sentinel failover-timeout ${MASTER} 5000`,
    ]
    writeFileSync(file, lines.join('\n'))
    return [file, '--sentinel']
  })
}

/** Whether a sentinel knows all others, `count` with itself, and sees the replica connected to the master. */
async function knowsAll(sentinel: Address, count: number): Promise<boolean> {
  const master = await command<string[]>(sentinel, 'SENTINEL', 'MASTER', MASTER)
  const [replica] = await command<string[][]>(sentinel, 'SENTINEL', 'REPLICAS', MASTER)
  return (
    field(master, 'num-other-sentinels') === String(count - 1) &&
    field(replica ?? [], 'master-link-status') === 'ok'
  )
}

/** The value of a name in a reply that lists names and values in turn. */
function field(reply: readonly string[], name: string): string | undefined {
  return reply[reply.indexOf(name) + 1]
}

/** Whether a server is master, by its own word and by that of every sentinel. */
async function isMaster(server: Address, sentinels: readonly Address[]): Promise<boolean> {
  if ((await roleOf(server)) !== 'master') return false
  const said = await Promise.all(
    sentinels.map((sentinel) => command<string[]>(sentinel, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', MASTER)),
  )
  return said.every(([, port]) => port === String(server.port))
}

const MASTER = 'main'

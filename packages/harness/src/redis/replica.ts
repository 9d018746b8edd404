import { type Address, command, info } from './command.js'
import { type RedisServer, startRedis } from './redis-server.js'
import { until } from './until.js'

export interface Replica extends RedisServer {
  /** Makes a master of it, with the data that it has received. */
  promote(): Promise<void>
}

export interface ReplicaOptions {
  /** Replicates over this address instead, mostly a proxy in front of the master. */
  readonly through?: Address
  readonly args?: readonly string[]
}

/** Starts a replica and waits until it is in sync. */
export async function startReplica(
  of: Address,
  { through = of, args = [] }: ReplicaOptions = {},
): Promise<Replica> {
  const server = await startRedis({ args: ['--replicaof', `${through.host} ${through.port}`, ...args] })
  try {
    await inSync(server)
  } catch (error) {
    await server.stop()
    throw error
  }
  const promote = async () => {
    await command(server, 'REPLICAOF', 'NO', 'ONE')
    await until('the replica to become a master', async () => (await roleOf(server)) === 'master')
  }
  return Object.assign(server, { promote })
}

/** Waits until a replica is connected to its master and has its data. */
async function inSync(replica: Address): Promise<void> {
  await until(`the replica on port ${replica.port} to be in sync`, async () => {
    return (await info(replica, 'replication')).master_link_status === 'up'
  })
}

/** The role that a server has now: 'master' or 'slave'. */
export async function roleOf(server: Address): Promise<string | undefined> {
  return (await info(server, 'replication')).role
}

import type { Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { Cluster as IoredisCluster, Redis as Ioredis } from 'ioredis'
import { Redis as Iovalkey } from 'iovalkey'
import { createClient, createCluster } from 'redis'
import type { Address } from '@sluice/harness/redis'

/** A user of a server and of the nodes of a Cluster. */
export interface Login {
  readonly user: { readonly username: string; readonly password: string }
  readonly server: Address
  readonly nodes: readonly Address[]
}

export interface LoggedIn {
  readonly store: Store
  end(): unknown
}

/** Stores on connections of their own, and on clients with default settings that are handed in. */
export const clients: Readonly<Record<string, (login: Login) => Promise<LoggedIn>>> = {
  'own connection': async ({ user, server }) => own({ ...at(server), ...user }),
  'own Cluster connection': async ({ user, nodes }) => own({ cluster: nodes.map(at), ...user }),
  ioredis: async ({ user, server }) => handedIn(new Ioredis({ ...at(server), ...user })),
  iovalkey: async ({ user, server }) => handedIn(new Iovalkey({ ...at(server), ...user })),
  'ioredis Cluster': async ({ user, nodes }) =>
    handedIn(new IoredisCluster(nodes.map(at), { redisOptions: user })),
  'node-redis': async ({ user, server }) => {
    const client = createClient({ ...user, socket: at(server) })
    await client.connect()
    return { store: redisStore(client), end: () => client.destroy() }
  },
  'node-redis cluster': async ({ user, nodes }) => {
    const cluster = createCluster({ rootNodes: nodes.map((node) => ({ socket: at(node) })), defaults: user })
    await cluster.connect()
    return { store: redisStore(cluster), end: () => cluster.destroy() }
  },
}

/** A store that makes its own connection with these options. */
function own(options: object): LoggedIn {
  const store = redisStore(options)
  return { store, end: () => store.close() }
}

/** A store on a client that was made for it. */
function handedIn(client: Ioredis | Iovalkey | IoredisCluster): LoggedIn {
  return { store: redisStore(client), end: () => client.disconnect() }
}

/** Host and port alone of something that has more fields. */
function at({ host, port }: Address): Address {
  return { host, port }
}

import {
  type Cluster,
  command,
  type Proxy,
  type RedisServer,
  startCluster,
  startProxy,
  startRedis,
} from '@sluice/harness/redis'

/** A server and a Cluster of one node, each with a proxy in front, by whose address clients reach it. `stop` ends all. */
export interface ProxiedServers {
  readonly server: RedisServer
  readonly proxy: Proxy
  readonly cluster: Cluster
  readonly clusterProxy: Proxy
  stop(): Promise<void>
}

export async function startProxiedServers(): Promise<ProxiedServers> {
  const [server, cluster] = await Promise.all([startRedis(), startCluster({ masters: 1 })])
  const node = cluster.masters[0]!
  const [proxy, clusterProxy] = await Promise.all([startProxy(server), startProxy(node)])
  await command(node, 'CONFIG', 'SET', 'cluster-announce-ip', clusterProxy.host)
  await command(node, 'CONFIG', 'SET', 'cluster-announce-port', clusterProxy.port)
  const stop = async (): Promise<void> => {
    await Promise.all([proxy.close(), clusterProxy.close()])
    await Promise.all([server.stop(), cluster.stop()])
  }
  return { server, proxy, cluster, clusterProxy, stop }
}

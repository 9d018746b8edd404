/** Of the options of a client, or of a connection: where it connects to. */
export interface Location {
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly path?: string | null | undefined
  readonly name?: string | null | undefined
  readonly sentinels?: readonly Partial<HostAndPort>[] | null | undefined
  /** Nodes of a Cluster. Of ioredis some may be ports or URLs, which are not shown. */
  readonly cluster?: readonly unknown[] | undefined
}

interface HostAndPort {
  readonly host: string
  readonly port: number
}

/** Where a client connects to, for messages. Never credentials. */
export function addressOf({ host, port, path, name, sentinels, cluster }: Location): string {
  if (cluster)
    return `a Cluster of ${cluster.map((node) => hostAndPort(node as Partial<HostAndPort>)).join()}`
  if (sentinels) return `${name} of the Sentinels ${sentinels.map(hostAndPort).join()}`
  return path ?? hostAndPort({ host, port })
}

function hostAndPort({ host, port }: { readonly host?: unknown; readonly port?: unknown }): string {
  return `${typeof host === 'string' ? host : '127.0.0.1'}:${typeof port === 'number' ? port : 6379}`
}

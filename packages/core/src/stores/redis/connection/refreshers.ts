import type { OwnIoredis } from './packages.js'

/**
 * A Cluster client of ioredis asks for its slots over connections of their own, and does not end them with itself: one
 * to a node that stands still would keep the process alive for as long as it may be silent. Returns what ends them.
 */
export function refreshersOf(client: OwnIoredis): () => void {
  const refreshers = new Set<OwnIoredis>()
  client.on('+node', (node) => {
    const duplicate = node.duplicate.bind(node)
    node.duplicate = (options) => {
      const refresher = duplicate(options)
      refreshers.add(refresher)
      refresher.on('end', () => refreshers.delete(refresher))
      return refresher
    }
  })
  return () => {
    for (const refresher of refreshers) refresher.disconnect()
  }
}

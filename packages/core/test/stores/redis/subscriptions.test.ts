import { command, until } from '@sluice/harness/redis'
import { ofCluster, ofOneServer } from './client-kinds.js'
import { type ProxiedServers, startProxiedServers } from './proxied-servers.js'

jest.setTimeout(60_000)

let servers: ProxiedServers
beforeAll(async () => void (servers = await startProxiedServers()))
afterAll(() => servers.stop())

const kinds = Object.entries({ ...ofOneServer, ...ofCluster }).filter(([kind]) => !kind.includes('pool'))

describe.each(kinds)('a subscription of %s', (kind, open) => {
  const isCluster = kind in ofCluster
  const node = () => (isCluster ? servers.cluster.masters[0]! : servers.server)
  const proxy = () => (isCluster ? servers.clusterProxy : servers.proxy)

  it('is asked for again if its connection broke when it was', async () => {
    const { connection, end } = await open(proxy())
    const { cuts } = proxy().counts
    proxy().cutOnCall('subscribe')
    const heard = new Set<string>()
    const unsubscribe = connection.subscribe!('broken', (message) => heard.add(message))
    await until('its connection to break', () => proxy().counts.cuts > cuts)
    await proxy().heal()
    await until('a message', async () => {
      await command(node(), 'PUBLISH', 'broken', 'sent')
      return heard.has('sent')
    })
    unsubscribe()
    await end()
  })

  it('is asked for again if the server refused it', async () => {
    await command(node(), 'ACL', 'SETUSER', 'default', '-subscribe')
    const { connection, end } = await open(proxy())
    const heard = new Set<string>()
    const unsubscribe = connection.subscribe!('refused', (message) => heard.add(message))
    await until('a refusal', async () => (await command(node(), 'ACL', 'LOG')).length > 0)
    await command(node(), 'ACL', 'LOG', 'RESET')
    await command(node(), 'ACL', 'SETUSER', 'default', '+subscribe')
    await until('a message', async () => {
      await command(node(), 'PUBLISH', 'refused', 'sent')
      return heard.has('sent')
    })
    unsubscribe()
    await end()
  })
})

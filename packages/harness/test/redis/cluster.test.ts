import { type Cluster, command, pipeline, startCluster, until } from '@sluice/harness/redis'

jest.setTimeout(60_000)

describe('a Cluster', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster({ masters: 3, replicas: 1 })
  })
  afterAll(() => cluster.stop())

  it('serves every slot from three masters with a replica each', async () => {
    const nodes = await cluster.nodes()
    const masters = nodes.filter(({ role }) => role === 'master')
    expect(masters.map(({ slots }) => slots.flat()).sort(([a], [b]) => a! - b!)).toEqual([
      [0, 5461],
      [5462, 10922],
      [10923, 16383],
    ])
    expect(new Set(nodes.map(({ masterId }) => masterId)).size).toBe(4)
  })

  it('moves a slot with its keys', async () => {
    const slot = await cluster.slotOf('{user}:0')
    const from = await cluster.ownerOf(slot)
    const to = cluster.masters.find((node) => node !== from)!
    const commands = Array.from({ length: 250 }, (_, i) => ['SET', `{user}:${i}`, i])
    await pipeline(from, commands)
    await cluster.moveSlot(slot, from, to)
    expect(await cluster.ownerOf(slot)).toBe(to)
    expect(await command<number>(to, 'CLUSTER', 'COUNTKEYSINSLOT', slot)).toBe(250)
    await expect(command(from, 'GET', '{user}:7')).rejects.toThrow(`MOVED ${slot} ${to.host}:${to.port}`)
  })

  it('lets a replica take over from a master that was killed', async () => {
    const [master] = cluster.masters
    const [replica] = cluster.replicas
    await master!.kill()
    await until('the replica to take over', async () => (await cluster.ownerOf(0)) === replica)
    await cluster.ready()
    expect(await command(replica!, 'SET', '{06S}', 1)).toBe('OK')
  })
})

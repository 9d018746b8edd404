import { command, startProxy, startRedis, startReplica, until } from '@sluice/harness/redis'

jest.setTimeout(60_000)

describe('a replica', () => {
  it('follows its master over a slow link, and keeps what it had when it is promoted', async () => {
    const master = await startRedis()
    const link = await startProxy(master)
    const replica = await startReplica(master, { through: link })
    await command(master, 'SET', 'early', 1)
    await until('replication', async () => (await command<string | null>(replica, 'GET', 'early')) === '1')
    await expect(command(replica, 'SET', 'k', 1)).rejects.toThrow(/^READONLY/)
    link.latency(5000, 'to-client')
    await command(master, 'SET', 'late', 1)
    await master.kill()
    await replica.promote()
    expect(await command(replica, 'MGET', 'early', 'late')).toEqual(['1', null])
    await Promise.all([master.stop(), replica.stop(), link.close()])
  })
})

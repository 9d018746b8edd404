import { once } from 'node:events'
import { connect } from 'node:net'
import { command, type RedisServer, startProxy, startRedis, until } from '@sluice/harness/redis'

jest.setTimeout(60_000)

describe('a proxy', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  it('passes bytes on and counts them', async () => {
    const proxy = await startProxy(server)
    expect(await command(proxy, 'PING')).toBe('PONG')
    expect(proxy.counts).toMatchObject({ connections: 1, toServer: 14, toClient: 7, cuts: 0 })
    await until('the connection to close', () => proxy.counts.open === 0)
    await proxy.close()
  })

  it('delays each direction on its own', async () => {
    const proxy = await startProxy(server)
    proxy.latency(100, 'to-server')
    proxy.latency(50, 'to-client')
    const started = performance.now()
    await command(proxy, 'PING')
    expect(performance.now() - started).toBeGreaterThanOrEqual(149)
    await proxy.close()
  })

  it('swallows without closing, and lets pass late what it held, or resets', async () => {
    const proxy = await startProxy(server)
    proxy.blackHole()
    const late = command(proxy, 'INCR', 'late')
    await expect(Promise.race([late, until('nothing', () => false, 150)])).rejects.toThrow('waited')
    expect(proxy.counts.open).toBe(1)
    await proxy.heal()
    expect(await late).toBe(1)

    proxy.blackHole()
    const lost = command(proxy, 'INCR', 'lost')
    await until('the connection', () => proxy.counts.open === 1)
    await until('the bytes to arrive', () => new Promise((resolve) => setTimeout(resolve, 50, true)))
    await Promise.all([expect(lost).rejects.toThrow(/ECONNRESET|closed/), proxy.heal({ reset: true })])
    expect(await command<number>(server, 'EXISTS', 'lost')).toBe(0)
    await proxy.close()
  })

  it('cuts off a reply after the command was executed, once', async () => {
    const proxy = await startProxy(server)
    proxy.cutOnReply()
    await expect(command(proxy, 'INCR', 'cut')).rejects.toThrow(/ECONNRESET|closed/)
    expect(await command(proxy, 'GET', 'cut')).toBe('1')
    expect(proxy.counts.cuts).toBe(1)
    await proxy.close()
  })

  it('resets a connection before a command of a name reaches the server, every second time', async () => {
    const proxy = await startProxy(server)
    proxy.cutOnCall('incr')
    await expect(command(proxy, 'INCR', 'reset')).rejects.toThrow(/ECONNRESET|closed/)
    expect(await command<number>(proxy, 'INCR', 'reset')).toBe(1)
    await expect(command(proxy, 'incr', 'reset')).rejects.toThrow(/ECONNRESET|closed/)
    expect(await command(proxy, 'GET', 'reset')).toBe('1')
    expect(proxy.counts.cuts).toBe(2)
    await proxy.close()
  })

  it('refuses connections and resets those it has, until it is healed', async () => {
    const proxy = await startProxy(server)
    const idle = connect(proxy.port, proxy.host)
    await until('the connection', () => proxy.counts.open === 1)
    const reset = once(idle, 'error')
    await proxy.refuse()
    expect(String(await reset)).toContain('ECONNRESET')
    await expect(command(proxy, 'PING')).rejects.toThrow('ECONNREFUSED')
    await proxy.heal()
    expect(await command(proxy, 'PING')).toBe('PONG')
    await proxy.close()
  })
})

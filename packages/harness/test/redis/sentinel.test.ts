import { command, startSentinel } from '@sluice/harness/redis'

jest.setTimeout(60_000)

describe('a Sentinel', () => {
  it.each([1, 3] as const)('(%i) makes a master of the replica when the master dies', async (sentinels) => {
    const setup = await startSentinel({ sentinels })
    const { master, replica } = setup
    await setup.failover()
    expect(setup.master).toBe(replica)
    expect(setup.replica).toBe(master)
    expect(await command(replica, 'SET', 'k', 1)).toBe('OK')
    await setup.stop()
  })

  it('changes the roles of two that live', async () => {
    const setup = await startSentinel()
    const { master } = setup
    await setup.failover('planned')
    expect(await command(setup.master, 'SET', 'k', 1)).toBe('OK')
    await expect(command(master, 'SET', 'k', 1)).rejects.toThrow(/^READONLY/)
    await setup.stop()
  })
})

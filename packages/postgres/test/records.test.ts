import { createLimiter, gcra, type Limiter } from '@sluice/core'
import { postgresStore, type PostgresStoreOptions } from '../src/index.js'
import { onePostgres } from './one-postgres.js'

jest.setTimeout(60_000)

const WHO = { reason: 'a campaign', by: 'ops' }
const policies = [gcra({ limit: 10, window: '1d' })]
const own = onePostgres()
const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A limiter on a store of its own, as another process has it. */
function open(options: PostgresStoreOptions = {}, name = 'api', pool = own.open()) {
  const store = postgresStore(pool, options)
  const limiter = createLimiter({ name, policies, store, deadline: '10s', onStoreError: 'throw' })
  closing.push(
    () => limiter.close(),
    () => store.close(),
  )
  return limiter
}
const nextChange = (limiter: Limiter) =>
  new Promise<string>(
    (resolve) => void limiter.on('override', ({ change, key }) => resolve(`${change} ${key}`)),
  )

describe('an override in Postgres', () => {
  it('is in force in another process after its next read, and listed though ids are digests', async () => {
    const [one, other] = [open(), open()]
    await Promise.all([one.consume('a'), other.consume('a')])
    const learned = nextChange(other)
    await one.override('a|"{}\\', { limit: 50, until: '1h', ...WHO })
    expect(await learned).toBe('set a|"{}\\')
    expect((await other.peek('a|"{}\\')).limit).toBe(50)
    expect(await open().overrides()).toMatchObject([{ key: 'a|"{}\\', ...WHO, limits: { '10-per-1d': 50 } }])
    const removed = nextChange(one)
    await other.removeOverride('a|"{}\\')
    expect(await removed).toBe('removed a|"{}\\')
  })

  it('is one of each writer that writes at once: the last wins, and all see the same', async () => {
    const writers = Array.from({ length: 4 }, () => open({ table: 'at_once' }))
    await Promise.all(
      writers.flatMap((limiter, w) =>
        Array.from({ length: 25 }, (_, i) =>
          limiter.override(`k${i % 5}`, {
            limit: 100 + w,
            until: '1h',
            reason: 'race',
            by: `${w}`,
            force: true,
          }),
        ),
      ),
    )
    const lists = await Promise.all(writers.map((limiter) => limiter.overrides()))
    for (const list of lists) {
      expect(list).toEqual(lists[0])
      expect(list).toHaveLength(5)
      for (const { by, limits } of list) expect(limits).toEqual({ '10-per-1d': 100 + Number(by) })
    }
  })

  it('has the version of its own write, and a block its own end, though another comes between the write and what it reads', async () => {
    let now = 1_800_000_000_000_000
    const options = { table: 'between', clock: () => now }
    let meanwhile: (() => Promise<void>) | undefined
    const pool = own.open()
    const query: typeof pool.query = pool.query.bind(pool)
    const paused = Object.assign(pool, {
      query: async (statement: { readonly text: string }) => {
        const result = (await query(statement)) as unknown
        const [act] = statement.text.startsWith('with at as') ? [meanwhile, (meanwhile = undefined)] : []
        await act?.()
        return result
      },
    })
    const [limiter, other] = [open(options, 'api', paused), open(options)]
    await Promise.all([limiter.consume('a'), other.consume('a')])
    meanwhile = () => other.block('a', '2h', { reason: 'a race', by: 'other' })
    await limiter.block('a', '1h', { reason: 'a race', by: 'one' })
    now += 1000
    const [{ by, until } = {}] = await limiter.overrides()
    const { reason, retryAfterMs } = await other.peek('a')
    expect([by, reason, retryAfterMs]).toEqual(['other', 'blocked', Number(until) - now / 1000])
  })

  it('that has ended is a new one where its group is full by now', async () => {
    let now = 1_800_000_000_000_000
    const store = postgresStore(own.open(), { clock: () => now })
    closing.push(() => store.close())
    const table = store.records!()
    const write = (name: string, life: number) =>
      table.write({ id: `full\n"${name}"`, text: 'text', until: 0, life, most: 2 }, 0)
    await write('ended', 1)
    await write('one', 1000)
    now += 1
    expect(await write('other', 1000)).toBeDefined()
    expect(await write('ended', 1000)).toBeUndefined()
    expect(await write('one', 1000)).toBeDefined()
  })

  it('goes with the table, also where others were written since', async () => {
    const [one, other] = [open({ table: 'emptied' }), open({ table: 'emptied' })]
    await one.override('lost', { limit: 50, until: '1h', ...WHO })
    expect((await other.peek('lost')).limit).toBe(50)
    await own.pool.query('truncate emptied')
    await one.override('kept', { limit: 60, until: '1h', ...WHO })
    expect([(await one.peek('lost')).limit, (await one.peek('kept')).limit]).toEqual([10, 60])
  })

  it('blocks with a record through an exemption', async () => {
    const limiter = open({ table: 'blocks' })
    await limiter.override('a', { exempt: true, until: '1h', ...WHO })
    expect((await limiter.consume('a')).exempt).toBe(true)
    await limiter.block('a', '1h', WHO)
    expect(await limiter.consume('a')).toMatchObject({ allowed: false, reason: 'blocked' })
    await limiter.unblock('a')
    expect((await limiter.consume('a')).exempt).toBe(true)
  })
})

it('a record that the table drops is an error, and asks no more', async () => {
  const store = postgresStore(own.open(), { table: 'dropping' })
  closing.push(() => store.close())
  await store.ready()
  await own.pool
    .query(`create function dropped() returns trigger language plpgsql as 'begin return null; end';
    create trigger drops before insert or update on dropping for each row execute function dropped()`)
  const record = { id: '["api","override","a"]', text: '{}', until: 0, life: 60_000_000, most: 10 }
  await expect(store.records!().write(record, 0)).rejects.toMatchObject({ code: 'STORE_ERROR' })
})

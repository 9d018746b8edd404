import { type NoLogError, readLogs, replay } from '@sluice/cli'
import { readPolicies } from '@sluice/policies'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readAll, sourceOf, sums } from './bytes.js'

const FOLDER = join(__dirname, 'samples')

/** A log of a program: who has written it, and what is in it. */
interface Sample {
  /** The program and its version, or 'read' where the lines are made by hand after its documentation. */
  readonly by: string
  readonly about?: string
  readonly options?: string
  /** `denied` is null where the log has no status; `unread` are lines that look like calls, of which a report says so first. */
  readonly holds?: {
    readonly format: string
    readonly calls: number
    readonly callers: number
    readonly denied: number | null
    readonly unread: number
  }
  /** What the error says, where the log is refused. */
  readonly refused?: string
}

const SAMPLES = JSON.parse(readFileSync(join(FOLDER, 'samples.json'), 'utf8')) as Readonly<
  Record<string, Sample>
>
const bytesOf = (name: string): Buffer => readFileSync(join(FOLDER, `${name}.txt`))

describe.each(Object.entries(SAMPLES))('the sample %s', (name, sample) => {
  const options = sample.options === '--callers names' ? { callers: 'names' as const } : {}

  it('is read with its callers, calls and denials, or refused with the reason', async () => {
    const read = readAll([sourceOf(name, bytesOf(name))], options)
    if (sample.refused !== undefined) {
      await expect(read).rejects.toMatchObject<Partial<NoLogError>>({
        name: 'NoLogError',
        message: expect.stringContaining(sample.refused) as string,
      })
      return
    }
    const { reading, calls } = await read
    const callers = new Set(calls.map(({ keys }) => keys[0])).size
    const denied = reading.hasStatus ? calls.filter((call) => call.denied).length : null
    const { unread } = reading.ledger
    const format = reading.formats.get(name)
    expect({ format, calls: calls.length, callers, denied, unread }).toEqual(sample.holds)
  })

  it('has lines that add up, in all and in each group', async () => {
    if (sample.refused !== undefined) return expect(sample.holds).toBeUndefined()
    const { reading } = await readAll([sourceOf(name, bytesOf(name))], options)
    const { lines, read, skipped } = sums(reading)
    expect(read + Object.values(skipped).reduce((sum, count) => sum + count, 0)).toBe(lines)
    const groups = [...reading.ledger.groups.values()]
    if (groups.length === 0) return
    expect(groups.reduce((sum, group) => sum + group.read, 0)).toBe(read)
    const others = ['empty line', 'not in the format'].reduce(
      (sum, reason) => sum + (skipped[reason] ?? 0),
      0,
    )
    expect(groups.reduce((sum, group) => sum + group.lines, 0)).toBe(lines - others)
  })
})

it('every file of the folder is in the list', () => {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.txt'))
  expect(files.sort()).toEqual(
    Object.keys(SAMPLES)
      .map((name) => `${name}.txt`)
      .sort(),
  )
})

it('the denials of a sample are those that replay compares with', async () => {
  const policies = '{"limiters":{"api":{"policies":[{"algorithm":"slidingLog","limit":1000,"window":"1m"}]}}}'
  const { limiters } = readPolicies(policies)
  for (const name of ['fastify', 'pino-http', 'caddy', 'haproxy']) {
    const reading = await readLogs([sourceOf(name, bytesOf(name))], { selectors: [{}], needs: ['status'] })
    const { answers } = await replay(reading, { limiters, against: 'log' })
    expect(answers[0]!.against).toMatchObject({ allowedToDenied: 0, deniedToAllowed: 2 })
  }
})

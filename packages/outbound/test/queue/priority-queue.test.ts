import fc from 'fast-check'
import { PriorityQueue, type Queued } from '../../src/priority-queue.js'

interface Entry extends Queued<Entry> {
  readonly name: string
}

interface Share {
  readonly tenant?: string
  readonly weight?: number
  readonly cost?: number
}

const entry = (name: string, priority: number, { tenant, weight = 1, cost = 1 }: Share = {}) =>
  ({
    name,
    terms: { priority, tenant, weight, cost },
    line: undefined,
    standIn(this: Entry, line: Entry['line']) {
      Object.assign(this, { line })
    },
  }) as unknown as Entry

/** The names of the entries in the order in which they come to be first. */
function drain(queue: PriorityQueue<Entry>): string[] {
  const names: string[] = []
  for (let first; (first = queue.first()); queue.take(first)) {
    names.push(first.name)
  }
  return names
}

describe('waiting calls', () => {
  it('come by their priority, those of equal ones by their age', () => {
    const queue = new PriorityQueue<Entry>()
    const priorities = [0, 5, -1, 5, Infinity, 0, -Infinity, 2.5, Infinity]
    for (const [i, priority] of priorities.entries()) queue.add(entry(String(i), priority))
    expect(drain(queue).join('')).toBe('481370526')
  })

  it('may leave from any place, and come again behind those of their priority', () => {
    const entries = Array.from({ length: 200 }, (_, i) => entry(String(i), (i * 7) % 5))
    const queue = new PriorityQueue<Entry>()
    for (const each of entries) queue.add(each)
    for (const each of entries) if (Number(each.name) % 3 === 0) queue.delete(each)
    for (const each of entries) if (Number(each.name) % 6 === 0) queue.add(each)
    const left = [
      ...entries.filter(({ name }) => Number(name) % 3 > 0),
      ...entries.filter(({ name }) => Number(name) % 6 === 0),
    ]
    const sorted = left.toSorted((a, b) => b.terms.priority - a.terms.priority).map(({ name }) => name)
    expect(drain(queue)).toEqual(sorted)
  })

  it('are looked through in their order for one that is suitable', () => {
    const queue = new PriorityQueue<Entry>()
    for (let i = 0; i < 50; i++) queue.add(entry(String(i), i % 4))
    const seen = queue.first((each) => each.terms.priority < 3 && Number(each.name) > 10)
    expect(seen).toMatchObject({ name: '14', terms: { priority: 2 } })
    expect(queue.first(() => false)).toBeUndefined()
  })

  it('of 40,000 priorities cost at most six comparisons times the logarithm of their number each', () => {
    const count = 40_000
    let compared = 0
    const priority = (value: number) => ({ valueOf: () => (compared++, value) }) as unknown as number
    for (const value of [(i: number) => i, (i: number) => -i, (i: number) => (i * 7919) % count]) {
      const queue = new PriorityQueue<Entry>()
      for (let i = 0; i < count; i++) queue.add(entry('', priority(value(i))))
      compared = 0
      expect(drain(queue)).toHaveLength(count)
      expect(compared).toBeLessThanOrEqual(6 * count * Math.log2(count))
    }
  })
})

describe('tenants', () => {
  /** So many calls of each tenant, one tenant after the other. */
  const crowd = (counts: Readonly<Record<string, number>>, share: (tenant: string) => Share = () => ({})) => {
    const queue = new PriorityQueue<Entry>()
    for (const [tenant, count] of Object.entries(counts))
      for (let i = 0; i < count; i++) queue.add(entry(tenant, 0, { tenant, ...share(tenant) }))
    return queue
  }

  it('take turns, and those that have no more leave theirs to the others', () => {
    expect(drain(crowd({ a: 6, b: 2, c: 3 })).join('')).toBe('abcabcacaaa')
  })

  it('take as many turns in a round as their weight says', () => {
    const weights: Readonly<Record<string, number>> = { a: 3, b: 1, c: 2 }
    expect(drain(crowd({ a: 6, b: 6, c: 6 }, (tenant) => ({ weight: weights[tenant]! }))).join('')).toBe(
      'aaabccaaabccbccbbb',
    )
  })

  it('that come later wait for one round, however many calls the others have', () => {
    const queue = crowd({ a: 300 })
    for (let i = 0; i < 10; i++) queue.take(queue.first()!)
    for (const tenant of 'bcd') for (let i = 0; i < 3; i++) queue.add(entry(tenant, 0, { tenant }))
    expect(drain(queue).slice(0, 12).join('')).toBe('abcdabcdabcd')
  })

  it('whose calls leave unserved lose nothing by that', () => {
    const queue = crowd({ a: 0, b: 3 })
    const given = Array.from({ length: 300 }, () => entry('a', 0, { tenant: 'a' }))
    for (const each of given) queue.add(each)
    for (const each of given.slice(0, 297)) queue.delete(each)
    expect(drain(queue).join('')).toBe('bababa')
  })

  it('keep the order of their own calls, and priorities go before them', () => {
    const queue = new PriorityQueue<Entry>()
    for (let i = 0; i < 12; i++)
      queue.add(entry(String(i), i < 8 ? 0 : 1, { tenant: i % 2 ? 'odd' : 'even' }))
    expect(drain(queue)).toEqual(['8', '9', '10', '11', '0', '1', '2', '3', '4', '5', '6', '7'])
  })

  it('get their share of units in every span, up to one call', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({ weight: fc.integer({ min: 1, max: 5 }), cost: fc.integer({ min: 0, max: 9 }) }),
          {
            minLength: 2,
            maxLength: 6,
          },
        ),
        fc.integer({ min: 0, max: 50 }),
        (shares, from) => {
          const names = shares.map((_, i) => String(i))
          const queue = crowd(
            Object.fromEntries(names.map((name) => [name, 400])),
            (tenant) => shares[Number(tenant)]!,
          )
          // None of 400 calls is short of them in so many turns.
          const served = drain(queue).slice(from, 400)
          const highest = Math.max(1, ...shares.map(({ cost }) => cost))
          const rounds = shares.map(({ weight, cost }, i) => {
            const units = served.filter((name) => name === String(i)).length * Math.max(1, cost)
            return { rounds: units / weight, call: (highest * weight + Math.max(1, cost)) / weight }
          })
          for (const one of rounds)
            for (const other of rounds)
              expect(Math.abs(one.rounds - other.rounds)).toBeLessThanOrEqual(one.call + other.call)
        },
      ),
    )
  })
})

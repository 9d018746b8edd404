import { PriorityQueue } from '../../src/priority-queue.js'

type Entry = Parameters<PriorityQueue['add']>[0]

const entry = (name: string, priority: number) =>
  ({
    name,
    terms: { priority },
    place: -1,
    order: 0,
    standAt(this: Entry, place: number, order = this.order) {
      Object.assign(this, { place, order })
    },
  }) as unknown as Entry & { readonly name: string }

/** The names of the entries in the order in which they come to be first. */
function drain(queue: PriorityQueue): string[] {
  const names: string[] = []
  for (let first; (first = queue.first(() => true)); queue.delete(first)) {
    names.push((first as ReturnType<typeof entry>).name)
  }
  return names
}

describe('waiting calls', () => {
  it('come by their priority, those of equal ones by their age', () => {
    const queue = new PriorityQueue()
    const priorities = [0, 5, -1, 5, Infinity, 0, -Infinity, 2.5, Infinity]
    for (const [i, priority] of priorities.entries()) queue.add(entry(String(i), priority))
    expect(drain(queue).join('')).toBe('481370526')
  })

  it('may leave from any place, and come again behind those of their priority', () => {
    const entries = Array.from({ length: 200 }, (_, i) => entry(String(i), (i * 7) % 5))
    const queue = new PriorityQueue()
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
    const queue = new PriorityQueue()
    for (let i = 0; i < 50; i++) queue.add(entry(String(i), i % 4))
    const seen = queue.first(
      (each) => each.terms.priority < 3 && Number((each as { name?: string }).name) > 10,
    )
    expect(seen).toMatchObject({ name: '14', terms: { priority: 2 } })
    expect(queue.first(() => false)).toBeUndefined()
  })

  it('of 40,000 priorities cost at most twice the comparisons of one', () => {
    const count = 40_000
    let compared = 0
    const priority = (value: number) =>
      ({
        valueOf() {
          if (++compared > 100 * count) throw new Error('too many comparisons')
          return value
        },
      }) as unknown as number
    const comparisons = (priorities: readonly number[]) => {
      compared = 0
      const queue = new PriorityQueue()
      for (const each of priorities) queue.add(entry('', each))
      expect(drain(queue)).toHaveLength(count)
      return compared
    }
    const same = priority(0)
    const one = comparisons(Array.from({ length: count }, () => same))
    for (const value of [(i: number) => i, (i: number) => -i, (i: number) => (i * 7919) % count]) {
      const own = comparisons(Array.from({ length: count }, (_, i) => priority(value(i))))
      expect(own).toBeLessThanOrEqual(2 * one)
    }
  })
})

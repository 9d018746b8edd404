import { gcra } from '../../../src/index.js'
import { PolicyLists } from '../../../src/stores/memory/policy-lists.js'

const list = (limit: number) => [gcra({ limit, window: '1h' })]

it('numbers 8,191 lists of limits, and has the smallest limits stand for all others', () => {
  const lists = new PolicyLists(list(20_000))
  const numbers = Array.from({ length: 10_000 }, (_, i) => lists.open(list(20_000 - i)).number)
  expect(numbers.slice(0, 8191)).toEqual(Array.from({ length: 8191 }, (_, i) => i))
  expect(new Set(numbers.slice(8191))).toEqual(new Set([8191]))
  expect(lists.at(8191)).toMatchObject([{ limit: 10_001 }])
  expect(lists.at(7)).toMatchObject([{ limit: 19_993 }])
})

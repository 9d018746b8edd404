import { callRow } from '../calls.js'
import { timeText } from '../draw.js'
import type { ColumnResult } from '../run.js'

it.each([
  [0, '0'],
  [250, '250 ms'],
  [1500, '1.5 s'],
  [1234, '1.234 s'],
  [150_000, '2:30 min'],
  [179_001, '3:00 min'],
  [13 * 3_600_000, '13:00 h'],
  [24 * 3_600_000, '24:00 h'],
  [31 * 86_400_000, '31 days'],
  [733 * 3_600_000 + 56 * 60_000, '30.6 days'],
  [2_638_800_000, '30.6 days'],
  [Infinity, 'never'],
])('a time of %s ms is read as %s', (ms, text) => {
  expect(timeText(ms)).toBe(text)
})

it.each([
  [900, NaN, 'denied, try again in 900 ms'],
  [2_638_800_000, NaN, 'denied, try again in 30.6 days'],
  [Infinity, NaN, 'denied, it never fits'],
  [0, 9500, 'served after 9.5 s'],
  [0, 0, 'allowed, 3 left'],
])('a call with a wait of %s ms and a turn at %s is %s', (wait, turn, answer) => {
  const rows = { at: 0, key: 1, cost: 1, remaining: 3, retryAfterMs: wait, turn }
  const result = Object.fromEntries(Object.entries(rows).map(([name, each]) => [name, [each]]))
  expect(callRow(result as unknown as ColumnResult, 0).answer).toBe(answer)
})

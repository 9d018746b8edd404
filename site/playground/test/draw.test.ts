import { timeText } from '../draw.js'

it.each([
  [0, '0'],
  [250, '250 ms'],
  [1500, '1.5 s'],
  [150_000, '2:30 min'],
  [13 * 3_600_000, '13:00 h'],
  [24 * 3_600_000, '24:00 h'],
  [31 * 86_400_000, '31 days'],
  [733 * 3_600_000 + 56 * 60_000, '30.6 days'],
  [Infinity, 'never'],
])('a time of %s ms is read as %s', (ms, text) => {
  expect(timeText(ms)).toBe(text)
})

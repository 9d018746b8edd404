import { bar } from '../src/terminal/bar.js'
import { cut, widthOf } from '../src/terminal/paint.js'
import { roomFor, tableRow } from '../src/terminal/table.js'

test.each([
  [{ allowed: 0, denied: 0 }, '··········'],
  [{ allowed: 50, denied: 0 }, '█████·····'],
  [{ allowed: 60, denied: 40 }, '██████░░░░'],
  [{ allowed: 1, denied: 0 }, '█·········'],
  [{ allowed: 99, denied: 1 }, '█████████░'],
  [{ allowed: 1, denied: 99 }, '█░░░░░░░░░'],
  [{ allowed: 0, denied: 100 }, '░░░░░░░░░░'],
  [{ allowed: 120, denied: 0 }, '██████████'],
])('draws %j of 100 as %s', (count, drawn) => {
  expect(bar(10, 100, count)).toBe(drawn)
})

test('draws nothing of nothing', () => {
  expect(bar(5, 0, { allowed: 0, denied: 0 })).toBe('·····')
})

test('aligns cells by what they take up on the screen, colours aside', () => {
  const columns = [
    { title: 'name', width: 6 },
    { title: 'count', width: 5, align: 'right' as const },
  ]
  expect(tableRow(columns, ['\x1b[32mann\x1b[39m', '7'])).toBe('\x1b[32mann\x1b[39m         7')
})

test('leaves a column what the others do not take, within bounds', () => {
  const columns = [{ title: '', width: 20 }]
  expect([79, 30, 200].map((width) => roomFor(columns, width, 11, 60))).toEqual([57, 11, 60])
})

test('cuts a line that is too long, with its colours', () => {
  expect(cut('\x1b[1mabc\x1b[22mdef', 4)).toBe('abcd')
  expect(widthOf(cut('\x1b[1mabc\x1b[22m', 4))).toBe(3)
})

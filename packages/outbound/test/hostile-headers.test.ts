import fc from 'fast-check'
import { forbidsRetry, pauseMsOf } from '../src/other-side/pause.js'

/** 64 kB of any text in every header must not block the event loop. */
const SIZE = 65_536
const MOST_MS = 5

/** Texts that make a regular expression with overlapping repetitions backtrack. */
const repeated = [
  '"',
  '\\"',
  '"\\',
  ';',
  ',',
  ' ',
  '\t',
  '0',
  '1',
  '9',
  '.',
  '=',
  '1m',
  '1.',
  ';r=',
  ';t=',
  ';r=0',
  '"a";r=0;t=1, ',
  'r=0;',
  ';  ',
  'remaining=',
  'remaining=0, ',
  '/',
  '1/',
  'ms',
  'Mon, ',
  'T',
  ':',
  '-',
  '2026-01-01T',
  '\u0000',
  '\ud800',
  'é',
]

const fill = (part: string) => part.repeat(Math.ceil(SIZE / part.length)).slice(0, SIZE)

/** The quickest of five, because other programs use the machine too. */
function msFor(value: string): number {
  const reply = { status: 429, header: () => value }
  const times = Array.from({ length: 5 }, () => {
    const start = performance.now()
    pauseMsOf(reply)
    forbidsRetry(reply)
    return performance.now() - start
  })
  return Math.min(...times)
}

it.each(repeated)('64 kB of %j take less than 5 ms', (part) => {
  expect(msFor(fill(part))).toBeLessThan(MOST_MS)
  expect(msFor(`"a";r=0${fill(part)}`)).toBeLessThan(MOST_MS)
  expect(msFor(`${fill(part)}x`)).toBeLessThan(MOST_MS)
})

it('64 kB of random parts take less than 5 ms', () => {
  const parts = fc.array(fc.oneof(fc.constantFrom(...repeated), fc.string({ minLength: 1, maxLength: 8 })), {
    minLength: 1,
    maxLength: 12,
  })
  fc.assert(
    fc.property(parts, (some) => {
      expect(msFor(fill(some.join('')))).toBeLessThan(MOST_MS)
    }),
    { numRuns: 60 },
  )
})

it('a pause is undefined or a number from 0 on, for any headers', () => {
  const value = fc.oneof(
    fc.string(),
    fc.constantFrom('0', '-1', '1e9', '20ms', '6m0s', '99999999999999999999', 'NaN', '2026-13-45T99:99:99Z'),
  )
  fc.assert(
    fc.property(fc.constantFrom(200, 403, 429, 503, 529), fc.infiniteStream(value), (status, values) => {
      const asked = pauseMsOf({ status, header: () => values.next().value as string })
      if (asked !== undefined) expect(asked).toBeGreaterThanOrEqual(0)
    }),
  )
})

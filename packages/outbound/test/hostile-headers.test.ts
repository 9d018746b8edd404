import fc from 'fast-check'
import { runInNewContext } from 'node:vm'
import { forbidsRetry, pauseMsOf } from '../src/other-side/pause.js'

/** 64 kB of any text in every header must not block the event loop. */
const SIZE = 65_536
/** Text of this size takes a millisecond where the work grows with it, and several seconds where it grows with its square. */
const MOST_MS = 1000

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

/** Reads a reply with this text in every header, and throws where that does not end. */
function read(value: string): void {
  const reply = { status: 429, header: () => value }
  const both = (): unknown => [pauseMsOf(reply), forbidsRetry(reply)]
  runInNewContext('both()', { both }, { timeout: MOST_MS })
}

it.each(repeated)('64 kB of %j are read to their end', (part) => {
  for (const value of [fill(part), `"a";r=0${fill(part)}`, `${fill(part)}x`])
    expect(() => read(value)).not.toThrow()
})

it('64 kB of random parts are read to their end', () => {
  const parts = fc.array(fc.oneof(fc.constantFrom(...repeated), fc.string({ minLength: 1, maxLength: 8 })), {
    minLength: 1,
    maxLength: 12,
  })
  fc.assert(
    fc.property(parts, (some) => read(fill(some.join('')))),
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

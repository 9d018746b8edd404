import { keyspaceOf, partsOf, redisKey, STATE_FORMAT } from '../../../src/stores/redis/key.js'

const part = (key: string): string => redisKey('k', key).slice(2)

it('escapes percent signs, braces and controls of a caller, and nothing else', () => {
  for (let code = 0; code < 0x300; code++) {
    const char = String.fromCharCode(code)
    const isEscaped = '%{}'.includes(char) || /\p{Cc}/u.test(char)
    const expected = isEscaped ? `%${code.toString(16).padStart(2, '0')}` : char
    expect(part(`a${char}b${char}${char}`)).toBe(`a${expected}b${expected}${expected}`)
    expect(part(`\u20ac${char}`)).toBe(`\u20ac${expected}`)
  }
})

it('replaces what is longer than 128 bytes with its escapes, or malformed, by a digest', () => {
  expect(part('a'.repeat(128))).toBe('a'.repeat(128))
  expect(part(`${'a'.repeat(125)}{`)).toBe(`${'a'.repeat(125)}%7b`)
  for (const key of ['a'.repeat(129), `${'a'.repeat(126)}{`, '\u20ac'.repeat(43), 'a\ud800']) {
    expect(part(key)).toMatch(/^%sha256-[\w-]+$/)
  }
})

it.each(['a', 'a:b', ':', '%3a', 'ip:2001:db8::/64', '{x}', '{16.3}:a', '\u0085\0', '\u20ac', ''])(
  'is read as it was made: %p',
  (key) => {
    const shapes = ['gcra/1000', 'gcra/1', 'sliding-window/90000/10', 'calendar-window/day', 'reserving']
    const parts = { format: STATE_FORMAT, limiter: 'a:p{i}', shapes: shapes.join(), key }
    for (const tag of ['', '{16.3}:']) {
      const made = redisKey(keyspaceOf('lim:its', 'a:p{i}', shapes), key, tag)
      expect(partsOf('lim:its', made)).toEqual(parts)
      expect(partsOf('lim', made)).toBeUndefined()
      expect(partsOf('lim:its', made.replace('lim:its:', 'lim:its:x'))).toBeUndefined()
    }
  },
)

it('is read where it has the form of the format before', () => {
  const made = 'p:3:a%3ab:gcra/60000,sliding-window/60000/10:{16.3}:user%3a1'
  const shapes = 'gcra/60000,sliding-window/60000/10'
  expect(partsOf('p', made)).toEqual({ format: 3, limiter: 'a:b', shapes, key: 'user:1' })
})

it('has the window of each shape as its shortest text', () => {
  const shapes = ['gcra/60000', 'gcra/1500', 'sliding-window/86400000/24', 'calendar-window/day']
  expect(keyspaceOf('p', 'a:b', shapes)).toBe(
    `p:${STATE_FORMAT}:a%3ab:gcra/1m,gcra/1500ms,sliding-window/1d/24,calendar-window/day`,
  )
})

it('is read without the key where it has a digest', () => {
  const made = redisKey(keyspaceOf('p', 'api', ['gcra/1']), 'a'.repeat(129))
  expect(partsOf('p', made)).toEqual({
    format: STATE_FORMAT,
    limiter: 'api',
    shapes: 'gcra/1',
    key: undefined,
  })
})

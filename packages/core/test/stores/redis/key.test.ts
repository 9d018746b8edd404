import { keyspaceOf, partsOf, redisKey, STATE_FORMAT } from '../../../src/stores/redis/key.js'

const part = (key: string): string => redisKey('k', key).slice(2)

it('escapes percent signs, colons, braces and controls, and nothing else', () => {
  for (let code = 0; code < 0x300; code++) {
    const char = String.fromCharCode(code)
    const isEscaped = '%:{}'.includes(char) || /\p{Cc}/u.test(char)
    const expected = isEscaped ? `%${code.toString(16).padStart(2, '0')}` : char
    expect(part(`a${char}b${char}${char}`)).toBe(`a${expected}b${expected}${expected}`)
    expect(part(`\u20ac${char}`)).toBe(`\u20ac${expected}`)
  }
})

it('replaces what is longer than 128 bytes with its escapes, or malformed, by a digest', () => {
  expect(part('a'.repeat(128))).toBe('a'.repeat(128))
  expect(part(`${'a'.repeat(125)}:`)).toBe(`${'a'.repeat(125)}%3a`)
  for (const key of ['a'.repeat(129), `${'a'.repeat(126)}:`, '\u20ac'.repeat(43), 'a\ud800']) {
    expect(part(key)).toMatch(/^%sha256-[\w-]+$/)
  }
})

it.each(['a', 'a:b', '%3a', 'ip:2001:db8::/64', '{x}', '\u0085\0', '\u20ac', ''])(
  'is read as it was made: %p',
  (key) => {
    const made = redisKey(keyspaceOf('lim:its', 'a:p{i}', ['gcra/1000', 'gcra/1']), key, '{16.3}:')
    const parts = { format: STATE_FORMAT, limiter: 'a:p{i}', shapes: 'gcra/1000,gcra/1', key }
    expect(partsOf('lim:its', made)).toEqual(parts)
    expect(partsOf('lim', made)).toBeUndefined()
    expect(partsOf('lim:its', made.replace('lim:its:', 'lim:its:x'))).toBeUndefined()
  },
)

it('is read without the key where it has a digest', () => {
  const made = redisKey(keyspaceOf('p', 'api', ['gcra/1']), 'a'.repeat(129))
  expect(partsOf('p', made)).toEqual({
    format: STATE_FORMAT,
    limiter: 'api',
    shapes: 'gcra/1',
    key: undefined,
  })
})

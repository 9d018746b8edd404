import { redisKey } from '../../../src/stores/redis/key.js'

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

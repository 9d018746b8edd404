import { rememberRecent } from '../src/caller.js'

const upperCase = (text: string): string => text.toUpperCase()

describe('rememberRecent', () => {
  it('asks once for a text that comes again', () => {
    const make = jest.fn(upperCase)
    const remembered = rememberRecent(make)
    make.mockClear()
    expect([remembered('ab'), remembered('cd'), remembered('ab')]).toEqual(['AB', 'CD', 'AB'])
    expect(make).toHaveBeenCalledTimes(2)
  })

  it('gives each of many texts its own result, whichever of them share a place', () => {
    const remembered = rememberRecent(upperCase)
    const texts = Array.from({ length: 2000 }, (_, i) => `a${i}`)
    for (let round = 0; round < 2; round++) expect(texts.map(remembered)).toEqual(texts.map(upperCase))
  })

  it('tells texts with the same end apart', () => {
    const remembered = rememberRecent(upperCase)
    expect([remembered('a.same.end'), remembered('b.same.end')]).toEqual(['A.SAME.END', 'B.SAME.END'])
  })

  it('has a result for the empty text', () => {
    expect(rememberRecent((text) => text.length)('')).toBe(0)
  })

  it('remembers no long text', () => {
    const make = jest.fn(upperCase)
    const remembered = rememberRecent(make)
    make.mockClear()
    const long = 'a'.repeat(65)
    expect([remembered(long), remembered(long)]).toEqual([long.toUpperCase(), long.toUpperCase()])
    expect(make).toHaveBeenCalledTimes(2)
  })
})

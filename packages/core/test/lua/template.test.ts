import { gcra, slidingLog } from '../../src/index.js'
import { composeScript } from '../../src/stores/redis/script/compose.js'
import { modules } from '../../src/stores/redis/script/modules.gen.js'
import { expand, fill, withConstants } from '../../src/stores/redis/script/template.js'

const minute = { limit: 5, window: '1m' } as const
const policies = [gcra(minute), slidingLog(minute)]

afterEach(() => jest.restoreAllMocks())

describe('a slip in a text of lua/ is an error when a script is composed', () => {
  it.each([
    ['an unknown word', 'engine', 'local x = @{longst}', `unknown word 'longst'`],
    ['a word that is not closed as others are', 'hot', 'local x = @{hot bytes}', `unknown word 'hot bytes'`],
    ["a policy's word outside a repeated line", 'engine', 'x = @{sane}', `unknown word 'sane'`],
    ["a policy's word where a line is not repeated", 'hot', '--@for any ring x_@{i}', `unknown word 'i'`],
    ['an unknown directive', 'engine', '--@each x = 1', `unknown directive '--@each x = 1'`],
    [
      'a directive that looks like a comment',
      'engine',
      '-- @for each policy x',
      `unknown directive '-- @for`,
    ],
    [
      'an unknown quantifier',
      'script',
      '--@for all policy x = 1',
      `unknown directive '--@for all policy x = 1'`,
    ],
    [
      'a directive without a line',
      'argument',
      '--@for each policy',
      `unknown directive '--@for each policy'`,
    ],
    ['an unknown list', 'alone', '--@for each rings x = 1', `unknown list 'rings'`],
    ['an unknown constant', 'engine', 'if op == CONSUM then x = 1 end', `unknown constant 'CONSUM'`],
    ['an unknown constant of an algorithm', 'gcra', 'x = HUGH', `unknown constant 'HUGH'`],
    ['an unknown module', 'gcra', '-- needs: slotz', `unknown module 'slotz'`],
    ['an unknown cell', 'sliding-log', '-- valid: sice <= cap', `unknown word 'sice'`],
    [
      'an unknown number of slots',
      'sliding-log',
      '-- slots: buckets * 2',
      `unknown number of slots 'buckets * 2'`,
    ],
  ])('%s', (_, file, line, message) => {
    expect(composeScript(policies)).not.toContain(line)
    jest.replaceProperty(modules, file, `${line}\n${modules[file]!}`)
    expect(() => composeScript(policies)).toThrow(message)
  })

  it('no place for the modules', () => {
    jest.replaceProperty(modules, 'script', modules['script']!.replace('@{modules}', ''))
    expect(() => composeScript(policies)).toThrow('no place for modules')
  })
})

describe('the template of the engine', () => {
  const lists = { policy: [{ i: '1' }, { i: '2' }], ring: [] }

  it('repeats a line for each member of a list, at its indent', () => {
    expect(expand('a\n  --@for each policy x_@{i} = @{all}\nb', lists)).toBe(
      'a\n  x_1 = @{all}\n  x_2 = @{all}\nb',
    )
  })

  it('keeps a line once where a list has any member, and drops it where the list has none', () => {
    expect(expand('--@for any policy x\n--@for any ring y', lists)).toBe('x\n')
  })

  it('fills words in', () => {
    expect(fill('@{a} + @{b}', { a: '1', b: '2' })).toBe('1 + 2')
  })

  it('puts constants in their places, but not in strings, comments and globals of Redis', () => {
    const text = `if op == PEEK then call('PEEK') return KEYS[1] end -- PEEK or AT`
    const filled = `if op == 2 then call('PEEK') return KEYS[1] end -- PEEK or AT`
    expect(withConstants(text, { PEEK: '2' })).toBe(filled)
  })
})

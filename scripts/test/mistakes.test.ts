import { Project } from './project.js'

const ROW = 'packages/faults/src/rows/row-07-clock.mistakes.diff'
const CHANGE = `# the clock: time stands still
--- lua/a.lua
- now + 1
+ now
`

const project = new Project({ 'lua/a.lua': 'local at = now + 1\nreturn  at\n' })

const check = (text: string) => project.write({ [ROW]: text }).run('check/mistakes.js')

describe('the mistakes of sabotage', () => {
  it('are changes of a text that stands in its file once', () => {
    const lines = `${CHANGE}
# lines: the end of one goes too
--- lua/a.lua
- 1
- return  at
-
+
`
    expect(check(lines)).toEqual({ status: 0, output: '2 mistakes, 0 that cannot be made\n' })
    const { output } = project.evaluate(
      'verify/sabotage/mistakes.js',
      'console.log(JSON.stringify(own.mistakes))',
    )
    expect(JSON.parse(output)).toEqual([
      {
        mechanism: 'the clock',
        mistake: 'time stands still',
        row: 7,
        file: 'lua/a.lua',
        text: 'now + 1',
        broken: 'now',
      },
      {
        mechanism: 'lines',
        mistake: 'the end of one goes too',
        row: 7,
        file: 'lua/a.lua',
        text: '1\nreturn  at\n',
        broken: '',
      },
    ])
  })

  it.each([
    ['is gone', 'local at = now', 0],
    ['stands there twice', 'now + 1 now + 1', 2],
  ])('are found where their text %s', (_, source, times) => {
    project.write({ 'lua/a.lua': source })
    expect(check(CHANGE)).toEqual({
      status: 1,
      output: `lua/a.lua must hold "now + 1" once, got ${times}\n1 mistakes, 1 that cannot be made\n`,
    })
  })

  it('are found where they are no code any more', () => {
    project.write({ 'packages/a.ts': 'class A { now() { return this.time } }' })
    const { status, output } = check('# a: b\n--- packages/a.ts\n- this.time\n+ this.#time\n')
    expect([status, output]).toEqual([1, expect.stringContaining('row 7: "this.#time" is no code: ')])
  })

  it('are also those that two faults must meet for, which stand beside the simulation', () => {
    const pairs = 'packages/simulation/src/pairs.mistakes.diff'
    project.write({ [ROW]: CHANGE, [pairs]: CHANGE.replace('now + 1', 'now + 2') })
    const { output } = project.run('check/mistakes.js')
    expect(output).toBe('lua/a.lua must hold "now + 2" once, got 0\n2 mistakes, 1 that cannot be made\n')
  })

  it.each([
    ['no file', CHANGE.replace('--- lua/a.lua\n', '')],
    ['no mechanism', CHANGE.replace('the clock: ', '')],
    ['nothing in its place', CHANGE.replace('+ now\n', '')],
    ['more than it says', `${CHANGE}more\n`],
  ])('must be whole: one with %s is refused', (_, text) => {
    const { status, output } = check(text)
    expect([status, output]).toEqual([
      1,
      expect.stringContaining('row-07-clock.mistakes.diff has a change that is not'),
    ])
  })
})

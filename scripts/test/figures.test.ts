import { Project } from './project.js'

const SCRIPT = 'check/figures.js'
const README = '# One\n\nAnswers in 50 ms, 100 a minute.\n\n<!-- figures -->\n<!-- end -->\n'

const project = new Project({ 'README.md': README })
beforeEach(() => void project.run(SCRIPT, '--write'))

describe("README's figures", () => {
  it('are written from docs/benchmarks', () => {
    expect(project.read('README.md')).toMatch(/express-rate-limit is \d\.\d times as fast as Sluice/)
    expect(project.run(SCRIPT)).toEqual({ status: 0, output: '4 sentences about speed\n' })
  })

  it('are found where one is another', () => {
    const changed = project.read('README.md').replace(/\d\.\d times as fast/, '0.1 times as fast')
    const { status, output } = project.write({ 'README.md': changed }).run(SCRIPT)
    expect([status, output]).toEqual([
      1,
      expect.stringContaining('README.md is not what npm run check -- figures --write makes it'),
    ])
  })

  it('are found in every other line', () => {
    const lines = ['Twice 2 times.', 'Makes 6 M.', 'In 3 us.', '376 k decisions a second', '20 % less']
    const page = project.read('README.md') + lines.join('\n')
    const { status, output } = project.write({ 'README.md': page }).run(SCRIPT)
    expect(status).toBe(1)
    expect(
      output.split('\n').filter((line) => lines.some((each) => line.endsWith(`: ${each}`))),
    ).toHaveLength(5)
  })
})

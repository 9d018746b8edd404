import { Project } from './project.js'

let project: Project
beforeEach(() => void (project = new Project()))
afterEach(() => project.remove())

/** What the check says of one file. */
function check(path: string, text = '') {
  return project.write({ [path]: text }).run('check/paths.js', path)
}

describe('the check of paths', () => {
  it.each([
    ['src/a.ts', "import { tmpdir } from 'node:os'\nprocess.kill(1, 'SIGTERM')\n"],
    ['src/a.ts', "// as in '/tmp/a', where SIGHUP\n/* '/tmp' */\n"],
    ['notes.md', "'/tmp' SIGHUP\n"],
  ])('finds nothing in %s of %j', (path, text) => {
    expect(check(path, text)).toEqual({ status: 0, output: '1 files, 0 problems\n' })
  })

  it.each([
    ["const folder = '/tmp/a'", 'a folder of Unix'],
    ['read(`/proc/${pid}/stat`)', 'a folder of Unix'],
    ["child.kill('SIGSTOP')", 'a signal that Windows lacks'],
    ["process.on('SIGHUP', end)", 'a signal that Windows lacks'],
    ["spawn('npm', ['ci'])", 'a batch file on Windows'],
    ["execFileSync('bash', ['-c', line])", 'a shell of Unix'],
    ['new URL(name, import.meta.url).pathname', 'begins with a slash on Windows'],
  ])('finds in %s: %s', (line, why) => {
    const { status, output } = check('src/a.js', `\n${line}\n`)
    expect(status).toBe(1)
    expect(output).toContain(`src/a.js:2: ${why}`)
  })

  it.each([
    ['a:b.txt', 'has a character that names have not on Windows'],
    ['what?.md', 'has a character'],
    ['src/aux.ts', 'is the name of a device on Windows'],
    ['COM1', 'is the name of a device on Windows'],
    ['docs./a.md', 'ends in a dot or a space'],
    [`${'long/'.repeat(36)}a`, 'is longer than Windows allows'],
  ])('finds that %s %s', (path, why) => {
    expect(check(path)).toEqual({ status: 1, output: expect.stringContaining(`${path}: ${why}`) })
  })

  it('finds names that differ by upper and lower case alone', () => {
    project.write({ 'Readme.md': '', 'README.md': '' })
    const { status, output } = project.run('check/paths.js', 'Readme.md', 'README.md')
    expect([status, output]).toEqual([1, expect.stringContaining('differs from Readme.md by upper')])
  })
})

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { warnProcess } from '@sluice/core/internal'
import { expectWarnings } from '@sluice/harness/warnings'

const WRITES = `process.emitWarning('of a program', { type: 'SluiceWarning', code: 'OF_A_PROGRAM' })`

describe('fails:', () => {
  it('a SluiceWarning', () => warnProcess('UNEXPECTED', 'a text'))

  it('a SluiceWarning beside one that is expected', () => {
    expectWarnings(['EXPECTED'])
    warnProcess('EXPECTED', 'a text')
    warnProcess('ANOTHER', 'a text')
  })

  it('an expected SluiceWarning that does not come', () => void expectWarnings(['MISSING']))

  it('a SluiceWarning that the test before expected', () => warnProcess('EXPECTED', 'a text'))

  it('a warning of Node', () =>
    new Promise<void>((done) => {
      process.emitWarning('a feature', 'ExperimentalWarning')
      done()
    }))

  it('a warning of another library', () =>
    process.emitWarning('old', { type: 'DeprecationWarning', code: 'LIB001' }))

  it('a line of the console', () => console.log('a line'))

  it('what is written to stderr', () => void process.stderr.write('written\n'))

  it('a warning of a child that inherits stderr', async () => {
    await once(spawn(process.execPath, ['--eval', WRITES], { stdio: 'inherit' }), 'close')
  })

  it('a warning of a worker thread', async () => {
    await once(new Worker(WRITES, { eval: true }), 'exit')
  })

  describe('in a hook', () => {
    afterEach(() => warnProcess('OF_A_HOOK', 'a text'))
    it('a SluiceWarning after the test', () => {})
  })
})

describe('passes:', () => {
  it('an expected SluiceWarning, and one that may come', () => {
    const written = expectWarnings(['EXPECTED'], { perhaps: ['PERHAPS', 'NOT_THIS_TIME'] })
    warnProcess('EXPECTED', 'a text')
    warnProcess('PERHAPS', 'a text')
    expect(written).toEqual([
      { code: 'EXPECTED', message: 'a text' },
      { code: 'PERHAPS', message: 'a text' },
    ])
  })

  it('a line of the console under a spy', () => {
    const log = jest.spyOn(console, 'log').mockImplementation()
    console.log('a line')
    log.mockRestore()
  })

  it('a child with pipes', () => void spawnSync(process.execPath, ['--eval', WRITES]))

  it('a warning of a library that is listed', () => {
    const text = "form-data doesn't follow the spec and requires special treatment. Use alternative package"
    const code = 'https://github.com/node-fetch/node-fetch/issues/1167'
    process.emitWarning(text, { type: 'DeprecationWarning', code })
  })
})

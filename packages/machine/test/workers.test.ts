import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onSources } from '@sluice/harness/processes'

jest.setTimeout(60_000)

const PROGRAM = 'packages/machine/test/workers.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-workers-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** What the program prints. It has to end by itself. */
async function run(kind: string): Promise<number> {
  const args = [...onSources(), PROGRAM, kind, join(folder, kind)]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 30_000 })
  return Number(stdout)
}

describe('a machine store', () => {
  it('is shared by the workers of node:cluster, which do not share its socket', async () => {
    expect(await run('cluster')).toBe(10)
  })

  it('is shared by worker threads', async () => {
    expect(await run('threads')).toBe(10)
  })

  it('keeps no process alive that serves and closes nothing', async () => {
    expect(await run('alone')).toBe(10)
  })
})

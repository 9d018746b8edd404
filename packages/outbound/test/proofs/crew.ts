import { build } from 'esbuild'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Job, Report } from './job.js'

/** Workers in processes of their own, forked from one bundle of `worker.ts`. */
export interface Crew {
  /** Starts workers that begin together; resolves with their reports in `done`. */
  start(jobs: readonly Job[]): Promise<Shift>
  end(): Promise<void>
}

export interface Shift {
  readonly workers: readonly ChildProcess[]
  /** Reports of the workers that were not killed. */
  readonly done: Promise<readonly Report[]>
}

export async function startCrew(): Promise<Crew> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-crew-'))
  const program = join(folder, 'worker.cjs')
  const workers: ChildProcess[] = []
  await build({
    entryPoints: ['packages/outbound/test/proofs/worker.ts'],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    logLevel: 'error',
    alias: {
      '@sluice/core/redis': resolve('packages/core/src/stores/redis.ts'),
      '@sluice/core': resolve('packages/core/src/index.ts'),
    },
  })
  return {
    async start(jobs) {
      const started = jobs.map((job) => fork(program, [JSON.stringify(job)]))
      workers.push(...started)
      await Promise.all(started.map((worker) => once(worker, 'message')))
      const reports = started.map(reportOf)
      for (const worker of started) worker.send('go')
      const done = Promise.all(reports).then((all) => all.filter((report) => report !== undefined))
      return { workers: started, done }
    },
    async end() {
      const running = workers.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
      await Promise.all(running.map((worker) => (worker.kill('SIGKILL'), once(worker, 'exit'))))
      rmSync(folder, { recursive: true })
    },
  }
}

/** Undefined from a worker that was killed. */
async function reportOf(worker: ChildProcess): Promise<Report | undefined> {
  const exited = once(worker, 'exit').then(() => undefined)
  const told = once(worker, 'message').then(([report]) => report as Report)
  return Promise.race([told, exited])
}

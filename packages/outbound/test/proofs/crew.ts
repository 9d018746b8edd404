import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { getPriority, setPriority } from 'node:os'
import { onSources } from '@sluice/harness/processes'
import type { Job, Report } from './job.js'

/** Workers in processes of their own, which run one program. */
export interface Crew<J = Job, R = Report> {
  /** Starts workers that begin together; resolves with their reports in `done`. */
  start(jobs: readonly J[]): Promise<Shift<R>>
  /** Ends the workers that there are; others may be started. */
  rest(): Promise<void>
  end(): Promise<void>
}

export interface Shift<R = Report> {
  readonly workers: readonly ChildProcess[]
  /** Reports of the workers that were not killed. */
  readonly done: Promise<readonly R[]>
}

export function startCrew<J = Job, R = Report>(program = WORKER): Crew<J, R> {
  const workers: ChildProcess[] = []
  async function rest(): Promise<void> {
    const running = workers.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
    await Promise.all(running.map((worker) => (worker.kill('SIGKILL'), once(worker, 'exit'))))
  }
  return {
    async start(jobs) {
      const started = jobs.map((job) => fork(program, [JSON.stringify(job)], { execArgv: [...onSources()] }))
      workers.push(...started)
      for (const { pid } of started) setPriority(pid!, PRIORITY)
      await Promise.all(started.map(ready))
      const reports = started.map((worker) => reportOf<R>(worker))
      for (const worker of started) worker.send('go')
      const done = Promise.all(reports).then((all) => all.flatMap((report) => report ?? []))
      return { workers: started, done }
    },
    rest,
    end: rest,
  }
}

/** That of this process may be raised meanwhile, for the other side. */
const PRIORITY = getPriority()
const WORKER = 'packages/outbound/test/proofs/worker.ts'

function ready(worker: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    worker.once('message', () => resolve())
    worker.once('exit', () => reject(new Error('a worker ended before it was ready')))
  })
}

/** Undefined from a worker that was killed. */
async function reportOf<R>(worker: ChildProcess): Promise<R | undefined> {
  const exited = once(worker, 'exit').then(() => undefined)
  const reported = once(worker, 'message').then(([report]) => report as R)
  return Promise.race([reported, exited])
}

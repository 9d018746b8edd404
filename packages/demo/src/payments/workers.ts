import { memoryStore } from '@sluice/core'
import { type Job, type Outcome, work } from '@sluice/examples/payments/worker.js'
import { randomUUID } from 'node:crypto'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Progress } from './progress.js'

/** Lets all workers make their payments in this process, with one store in its memory, until they are done or `stop` aborts. */
export async function workTogether(
  jobs: readonly Job[],
  progress: Progress,
  stop: AbortSignal,
): Promise<void> {
  const store = memoryStore()
  await Promise.all(jobs.map((job) => work(job, store, (outcome) => progress.add(job.worker, outcome), stop)))
  await store.close()
}

/** A process for each worker. They share their limits in Redis, below a prefix of this run. */
export async function workApart(
  jobs: readonly Job[],
  url: string,
  progress: Progress,
  stop: AbortSignal,
): Promise<void> {
  const prefix = `demo-${randomUUID()}`
  const children = jobs.map((job) => {
    // Detached, so that Ctrl-C in the terminal does not reach it.
    const child = fork(PROCESS, [url, prefix, JSON.stringify(job)], { detached: true })
    child.on('message', (outcome: Outcome) => progress.add(job.worker, outcome))
    return child
  })
  const exits = children.map((child) => once(child, 'exit'))
  const end = (): void => children.forEach((child) => child.connected && child.send('stop'))
  if (stop.aborted) end()
  else stop.addEventListener('abort', end)
  await Promise.all(exits)
}

const PROCESS = fileURLToPath(new URL('process.js', import.meta.url))

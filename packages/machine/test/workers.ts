import cluster from 'node:cluster'
import { once } from 'node:events'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { createLimiter, gcra } from '@sluice/core'
import { machineStore } from '@sluice/machine'

/*
 * A program for workers.test.ts: `workers.ts cluster|threads|alone FOLDER` prints how many calls were admitted by all of
 * its workers. None of them closes its store.
 */

const WORKERS = 3
const CALLS = 10
const [kind, folder] = isMainThread ? process.argv.slice(2) : (workerData as string[])

/** The calls of one worker that were admitted. */
async function callAll(): Promise<number> {
  const store = machineStore({ name: 'workers', folder: folder! })
  await store.ready()
  const policies = [gcra({ limit: 10, window: '1d' })]
  const limiter = createLimiter({ name: 'api', policies, store, deadline: '10s', onStoreError: 'throw' })
  const decisions = await Promise.all(Array.from({ length: CALLS }, () => limiter.consume('k')))
  return decisions.filter(({ allowed }) => allowed).length
}

async function admitted(): Promise<number> {
  if (kind === 'alone') return callAll()
  const workers = Array.from({ length: WORKERS }, () =>
    kind === 'cluster' ? cluster.fork() : new Worker(process.argv[1]!, { workerData: [kind, folder] }),
  )
  const results = await Promise.all(workers.map((worker) => once(worker as Worker, 'message')))
  for (const worker of workers) {
    if (worker instanceof Worker) await worker.terminate()
    else worker.kill()
  }
  return results.reduce((sum, [count]) => sum + (count as number), 0)
}

async function main(): Promise<void> {
  if (cluster.isWorker) process.send!(await callAll())
  else if (!isMainThread) {
    parentPort!.on('message', () => {}) // lives until it is ended, as the others may need its state
    parentPort!.postMessage(await callAll())
  } else console.log(await admitted())
}

void main()

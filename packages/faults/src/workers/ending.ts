import { createLimiter, gcra, memoryStore } from '@sluice/core'
import { machineStore, type MachineStoreOptions } from '@sluice/machine'
import { type RedisOptions, redisStore } from '@sluice/core/redis'
import { ownMs } from '@sluice/harness/figures'

/** The work that a process is in the middle of when it closes its limiter and its store. */
export type Moment = 'nothing' | 'a wait' | 'calls' | 'an outage'

/** Where the store is: the options of Redis's client, or of a store of the machine. */
type Where = { readonly machine: MachineStoreOptions } | (RedisOptions & { readonly machine?: undefined })

/** A process that lets go of everything and ends by itself: `node ending.cjs <moment> [<where the store is>]`. */
async function end(moment: Moment, where: Where | undefined): Promise<void> {
  const store = where?.machine ? machineStore(where.machine) : where ? redisStore(where) : memoryStore()
  const limiter = createLimiter({ name: 'ending', store, policies: [gcra({ limit: 1, window: '1h' })] })
  const ignore = () => {}
  const call = () => void limiter.consume(`user:${Math.random()}`).catch(ignore)
  if (moment === 'a wait') {
    await limiter.consume('k')
    limiter.acquire('k', { maxWait: '1d' }).catch(ignore)
    limiter.acquire('k', { maxWait: '1d' }).catch(ignore)
  }
  // Loading a client package takes as long as it takes; after that no process may linger.
  if (moment === 'nothing') await new Promise((resolve) => setTimeout(resolve, 300))
  if (moment === 'calls') call()
  if (moment !== 'nothing') await tell('ready')
  if (moment === 'calls') for (let i = 0; i < 100; i++) call()
  if (moment === 'an outage') {
    for (let ms = 0; ms < 500; ms += 10) {
      call()
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  const closed = ownMs()
  process.on('exit', () => console.log(ownMs() - closed))
  await limiter.close()
  await store.close()
}

/** Resolves when the parent process says that it may go on. */
async function tell(word: string): Promise<void> {
  process.stdout.write(word)
  await new Promise((resolve) => process.stdin.once('data', resolve))
  process.stdin.destroy()
}

void end(process.argv[2] as Moment, process.argv[3] ? JSON.parse(process.argv[3]) : undefined)

import { redisStore } from '@sluice/core/redis'
import { type Job, work } from '@sluice/examples/payments/worker.js'

/*
 * A worker in a process of its own. Its limits are those of the others: their state is in Redis.
 */
const [url, prefix, job] = process.argv.slice(2) as [string, string, string]
const store = redisStore(url, { prefix })
const stop = new AbortController()

process.on('disconnect', () => process.exit())
process.once('message', () => stop.abort())

await work(JSON.parse(job) as Job, store, (outcome) => process.send?.(outcome), stop.signal)
await store.close()
process.disconnect()

import { redisStore } from '@sluice/core/redis'
import { type Job, type News, work } from './worker.js'

/*
 * A worker in a process of its own. Its limits are those of the others: they lie in Redis.
 */
const [port, job] = process.argv.slice(2) as [string, string]
const store = redisStore({ host: '127.0.0.1', port: Number(port) })
const stop = new AbortController()

process.on('disconnect', () => process.exit())
process.on('SIGINT', () => {}) // the parent says when to stop
process.once('message', () => stop.abort())

await work(JSON.parse(job) as Job, (news: News) => process.send?.(news), stop.signal, store)
await store.close()
process.disconnect()

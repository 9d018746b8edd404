import { createSemaphore } from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'

/*
 * A process to be killed: takes one permit, or queues as many tickets as its argument says, and reports that it is ready.
 */
const [port, name, lease, tickets] = process.argv.slice(2) as [string, string, string, string]
const store = redisStore({ host: '127.0.0.1', port: Number(port) })
const semaphore = createSemaphore({ name, limit: 1, lease: Number(lease), deadline: '5s', store })

void hold()

async function hold(): Promise<void> {
  if (!tickets) await semaphore.acquire()
  else for (let i = 0; i < Number(tickets); i++) void semaphore.acquire('', { maxWait: '1m' })
  process.stdout.write('ready\n')
  setInterval(() => {}, 1000)
}

import type { Job } from '@sluice/examples/payments/worker.js'
import type { Demo } from '../demo.js'
import { readOptions } from '../options.js'
import { openRedis } from '../redis-server.js'
import { show } from '../terminal/show.js'
import { Progress } from './progress.js'
import { Provider } from './provider.js'
import { view } from './screen.js'
import { summarize } from './summary.js'
import { workApart, workTogether } from './workers.js'

const WORKERS = 4
const CUSTOMER_EACH_MS = 500

export const payments: Demo = {
  usage: `Usage: npm run demo -- payments [options]

Four workers make payments at a provider that allows 200 calls in 10 s and 5 at
once, and that is out of order for a while in the middle.

  --redis         a process for each worker, which share their limits in the Redis
                  that REDIS_URL names, or else in one that is started for them
  --payments N    payments in the batch, 4 to 100000 (default: 200)
  --help          show this`,

  async run(args, stop) {
    const options = readOptions(args, { redis: 'flag', payments: { least: 4, most: 100_000, default: 200 } })
    const redis = options.redis ? await openRedis() : undefined
    const provider = new Provider()
    const origin = await provider.start()
    const shares = Array.from({ length: WORKERS }, (_, i) => Math.floor((options.payments + i) / WORKERS))
    const progress = new Progress(shares)
    const jobs = shares.map((share, worker): Job => ({
      worker,
      origin,
      payments: share,
      customerEachMs: worker === 0 ? CUSTOMER_EACH_MS : 0,
    }))
    const where = redis ? `processes, with ${redis.what}` : 'workers in one process'
    const finish = show(view(`${options.payments} payments by ${WORKERS} ${where}`, progress, provider))
    const startedAt = performance.now()
    const halfway = setInterval(() => {
      if (progress.allPaid < options.payments / 2) return
      clearInterval(halfway)
      provider.breakDown()
    }, 20)
    try {
      await (redis ? workApart(jobs, redis.url, progress, stop) : workTogether(jobs, progress, stop))
    } finally {
      clearInterval(halfway)
      finish()
      provider.close()
      await redis?.stop()
    }
    const { text, held } = summarize(progress, provider, performance.now() - startedAt, stop.aborted)
    console.log(`\n${text}`)
    return held
  },
}

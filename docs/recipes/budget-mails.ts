import { calendarWindow } from '@sluice/calendar'
import { createLimiter, type Limiter, type Store } from '@sluice/core'
import { byUser, rateLimit } from '@sluice/express'
import { usageHandler } from '@sluice/http'
import { type Request, Router } from 'express'

/** Sends an e-mail, as a service of yours does. */
export type SendMail = (to: string, subject: string, text: string) => unknown

/**
 * A budget of 10,000 calls a month, with an e-mail at 80 % and at 100 %. The event comes once for each user, month and share in the
 * whole fleet, so that nothing has to be remembered about e-mails that were sent. Keep the store where a restart does not empty it.
 * `emailOf` gets the key, which behind `api` is `user:ann:api`, or `ip:203.0.113.7` of a caller without a user, who has no address.
 */
export function budget(store: Store, emailOf: (key: string) => string | undefined, send: SendMail): Limiter {
  const policies = [calendarWindow({ limit: 10_000, every: 'month', name: 'month' })]
  const limiter = createLimiter({ name: 'budget', policies, store, nearing: [0.8, 1] })
  limiter.on('nearing', ({ key, share, resetAfterMs, decidedBy }) => {
    if (decidedBy === 'local') return // the view of one process in an outage, while others may see the same
    const email = emailOf(key)
    if (email === undefined) return
    const days = Math.ceil(resetAfterMs / 86_400_000)
    return send(email, `${share * 100} % of your calls are used`, `The next month begins in ${days} days.`)
  })
  return limiter
}

/** The API behind the budget, and a page that reads what is left without spending any of it. */
export function api(limiter: Limiter, userOf: (req: Request) => string | undefined): Router {
  const limit = { limiter, key: byUser<Request>(userOf, 'api') }
  const router = Router()
  router.get('/usage.json', usageHandler(limit, rateLimit))
  router.get('/usage', (_req, res) => void res.type('html').send(PAGE))
  router.use(rateLimit(limit))
  return router
}

const PAGE = `<!doctype html>
<title>Your usage</title>
<table><tbody id="usage"></tbody></table>
<script>
  fetch('usage.json').then((reply) => reply.json()).then(({ limits = [] }) => {
    for (const { name, used, limit, resetAfterMs } of limits.flatMap(({ policies }) => policies))
      document.getElementById('usage').insertRow().append(
        name + ': ' + used + ' of ' + limit + ', anew ' + new Date(Date.now() + resetAfterMs).toLocaleString())
  })
</script>`

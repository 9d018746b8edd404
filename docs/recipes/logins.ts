import { createLimiter, memoryStore, slidingLog, type Store } from '@sluice/core'
import { byUser, rateLimit, userKey } from '@sluice/express'
import express, { type Request, type Response, Router } from 'express'

/** Whether this is the user's password. */
export type Verify = (user: string, password: string) => Promise<boolean>

/**
 * `POST /login` under two limits, which count failures alone: one for each address, against trying many users, and one for each
 * user, against guessing one password from many addresses. Whoever goes on after a refusal is blocked, for longer each time.
 *
 * The limit of a user lets a stranger lock that user out for as long as a block lasts. Where this matters more than guesses
 * from many addresses, count by user and address together: `joinKey('login', user, address)`.
 */
export function logins(verify: Verify, store: Store = memoryStore()): Router {
  const penalty = { after: 3, block: '10m', factor: 2, maxBlock: '1d', forgetAfter: '1d' }
  const addresses = createLimiter({
    name: 'login-address',
    policies: [slidingLog({ limit: 20, window: '1h' })],
    penalty,
    store,
  })
  const users = createLimiter({
    name: 'login-user',
    policies: [slidingLog({ limit: 5, window: '15m' })],
    penalty,
    store,
  })
  const router = Router()
  router.post(
    '/login',
    express.json(),
    // Charged on entry, so that guesses made at once are counted; a login that succeeds gets its own unit back. The address is
    // not reset, or an attacker would log in to an account of their own after every few guesses.
    rateLimit({ limiter: addresses, shouldCharge: hasFailed }),
    rateLimit({ limiter: users, shouldCharge: hasFailed, key: byUser(userIn, 'login') }),
    async (req: Request, res: Response) => {
      const user = userIn(req)
      const { password } = (req.body ?? {}) as { password?: unknown }
      if (user === undefined || typeof password !== 'string' || !(await verify(user, password))) {
        res.status(401).json({ error: 'wrong user or password' })
        return
      }
      // The right password ends what others have failed at, and the user's penalty.
      await users.reset(userKey(user, 'login'))
      res.json({ welcome: user })
    },
  )
  return router
}

/** One form of each name: `Ann` and `ann ` have one allowance if they are one user. */
function userIn({ body }: Request): string | undefined {
  const { user } = (body ?? {}) as { user?: unknown }
  const name = typeof user === 'string' ? user.trim().toLowerCase() : ''
  return name === '' ? undefined : name
}

function hasFailed(_req: Request, res: Response): boolean {
  return res.statusCode === 401
}

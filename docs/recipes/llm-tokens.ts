import { createLimiter, memoryStore, slidingWindow, type Store } from '@sluice/core'
import { byUser, decisionOf, rateLimit } from '@sluice/hono'
import { Hono } from 'hono'

/** What users may spend, in tokens of the prompt and the answer together. */
const LIMITS = [
  slidingWindow({ limit: 20_000, window: '1m', buckets: 12, name: 'minute' }),
  slidingWindow({ limit: 200_000, window: '1d', buckets: 24, name: 'day' }),
]
const MOST_ANSWERED = 4000

export interface Prompt {
  readonly text: string
  /** Most tokens of the answer. */
  readonly most: number
  readonly signal: AbortSignal
}

/** Your model. `used` is called with the tokens that have been used so far, at least when the answer is complete. */
export type Model = (prompt: Prompt, used: (tokens: number) => void) => Promise<string>

type AppEnv = { Variables: { user?: string; prompt?: Omit<Prompt, 'signal'> } }

/**
 * `POST /chat` under a budget of tokens for each user. The cost is known only afterwards, and a user may ask many times at once:
 * so the most that an answer can cost is reserved before the model is asked, and what was not used is given back after it.
 * A process that dies in between leaves the reservation charged, until it leaves the window.
 */
export function chat(
  model: Model,
  userOf: (request: Request) => string | undefined,
  store: Store = memoryStore(),
): Hono<AppEnv> {
  const tokens = createLimiter({ name: 'tokens', policies: LIMITS, store })
  const app = new Hono<AppEnv>()
  app.use('/chat', async (c, next) => {
    const user = userOf(c.req.raw)
    if (user === undefined) return c.json({ error: 'who are you?' }, 401)
    const { prompt, max_tokens: most = 1000 } = (await c.req.json().catch(() => ({}))) as Partial<Asked>
    if (typeof prompt !== 'string' || !(Number.isInteger(most) && most >= 1 && most <= MOST_ANSWERED)) {
      return c.json({ error: `expected a prompt, and max_tokens from 1 to ${MOST_ANSWERED}` }, 400)
    }
    c.set('user', user)
    c.set('prompt', { text: prompt, most })
    return next()
  })
  app.post(
    '/chat',
    rateLimit<AppEnv>({
      limiter: tokens,
      key: byUser((c) => c.get('user'), 'tokens'),
      cost: (c) => mostTokens(c.get('prompt')!),
    }),
    async (c) => {
      let used = 0
      try {
        const prompt = { ...c.get('prompt')!, signal: c.req.raw.signal }
        const answer = await model(prompt, (sum) => (used = sum))
        return c.json({ answer, used })
      } finally {
        // Also if the model failed or the caller hung up: what was used by then is charged, and no more.
        await decisionOf(c, 'tokens')!.settle(used)
      }
    },
  )
  return app
}

interface Asked {
  readonly prompt: unknown
  readonly max_tokens: number
}

/** No tokenizer makes more tokens of a text than it has bytes; four bytes a token is usual. Reserve too much, not too little. */
function mostTokens({ text, most }: Omit<Prompt, 'signal'>): number {
  return Math.ceil(Buffer.byteLength(text) / 3) + most
}

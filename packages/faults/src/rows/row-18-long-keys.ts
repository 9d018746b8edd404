import {
  createLimiter,
  createSemaphore,
  gcra,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  type Policy,
  type Store,
} from '@sluice/core'
import { createGuard, type Platform } from '@sluice/http'
import { type Answer, guard } from '@sluice/core/store'
import { bytesInUse } from '@sluice/harness/figures'
import { onSources } from '@sluice/harness/processes'
import { keepDenials, topKeys } from '@sluice/metrics'
import { createQueue } from '@sluice/outbound'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import type { Outcome } from '../row.js'

/** Something that holds keys of callers, under its name in the table of docs/sizing.md. */
interface Holder {
  readonly name: string
  /** Entries that it may hold here. */
  readonly most: number
  /** Keys that it is given. Default: half as many again as it may hold. */
  readonly given?: number
  /** Uses as many keys as it is given, and returns what holds them. */
  fill(keys: Iterable<string>): Promise<unknown>
}

/** `longKeys` in a process of its own: one that has done other things frees what these left while memory is measured. */
export function longKeysApart(): Outcome {
  const args = [...onSources(), 'packages/faults/src/workers/long-keys.ts']
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as Outcome
}

/** Gives everything that holds keys more and longer keys than it may hold, and compares its memory with the documented one. */
export async function longKeys(): Promise<Outcome> {
  const documented = bytesOfOne()
  const held: string[] = []
  let pass = true
  for (const holder of HOLDERS) {
    const bytes = await bytesEach(holder)
    const bound = documented.get(holder.name)
    if (!(bytes > 0 && bytes <= (bound ?? 0))) pass = false
    held.push(`${holder.name} ${bytes.toFixed(0)} of ${String(bound)} B`)
  }
  const unfilled = [...documented.keys()].filter((name) => !held.some((each) => each.startsWith(name)))
  if (unfilled.length > 0) pass = false
  return { pass, figure: `keys of 8,192 characters: ${[...held, ...unfilled].join(', ')}` }
}

/**
 * The bytes that something keeps of each long key, when it is given more keys than it may hold. What is made only once is not
 * counted.
 */
async function bytesEach({ most, given = 1.5 * most, fill }: Holder): Promise<number> {
  await close(await fill(keysTo(100))) // what is made once
  await setImmediate()
  const base = bytesInUse()
  const filled = await fill(keysTo(given))
  const bytes = (bytesInUse() - base) / most
  await close(filled)
  return bytes
}

/** Closes one thing, or a list of them, where they can be closed. */
async function close(holder: unknown): Promise<void> {
  for (const part of [holder].flat() as { close?(): Promise<void> }[]) await part.close?.()
}

/** Each of the longest that a caller may send: kept by its digest, kept as it is, and cut out of a longer text. */
function* keysTo(count: number): Generator<string> {
  for (let i = 0; i < count; i++) {
    const text = Buffer.alloc(LONGEST, `${count}:${i} `).toString('latin1')
    yield [text, `${count}:${i}`.padEnd(KEPT, '\u2603'), text.slice(0, KEPT)][i % 3]!
  }
}

const LONGEST = 8192
const KEPT = 128

/**
 * The documented bytes of one entry of everything that holds keys, by its name: the first and the third column of the table
 * in the docs.
 */
function bytesOfOne(): ReadonlyMap<string, number> {
  const table = /^\| what holds keys \|[^]*?\n\n/m.exec(readFileSync('docs/sizing.md', 'utf8'))![0]
  const lines = table.trim().split('\n').slice(2)
  const cells = lines.map((line) => line.split('|').map((cell) => cell.trim()))
  return new Map(cells.map(([, name, , bytes]) => [name!, Number(bytes!.replaceAll(',', ''))]))
}

const HOLDERS: readonly Holder[] = [
  {
    name: 'memory store',
    most: 16_000,
    async fill(keys) {
      const limiter = quiet({ store: memoryStore({ maxKeys: 16_000 }), penalty: PENALTY })
      for (const key of keys) for (let i = 0; i < 3; i++) void limiter.decide(key)
      return limiter
    },
  },
  {
    name: 'remembered denials',
    most: 2000,
    async fill(keys) {
      const limiter = quiet({ store: stateless('limit', 2000), policies: TIERS[0]! })
      for (const key of keys)
        for (let cost = 1; cost <= 32; cost++)
          await limiter.consume(key, { cost, policies: TIERS[cost % TIERS.length]! })
      return limiter
    },
  },
  {
    name: 'peeks at denied keys',
    most: 10_000,
    async fill(keys) {
      // Peeks are forgotten after a second, which does not pass here.
      const limiter = quiet({ store: { ...stateless('limit'), now: () => 0 }, policies: TIERS[0]! })
      for (const key of keys)
        for (const policies of PEEKED) await limiter.consume(key, { cost: 1000, policies })
      return limiter
    },
  },
  {
    name: 'leases',
    most: 2000,
    async fill(keys) {
      const store = stateless()
      const leases = { ttl: '1m', maxKeys: 2000 } as const
      const limiter = quiet({ store, leases, policies: [gcra({ limit: 1000, window: '1h' })] })
      for (const key of keys) for (let i = 0; i < 3; i++) await limiter.consume(key)
      return limiter
    },
  },
  {
    name: '`onExceeded`',
    most: 10_000,
    given: 20_000,
    async fill(keys) {
      const limiter = quiet({ store: stateless('limit') })
      const guard = createGuard<Call, unknown>({ limiter, key: ({ key }) => key, onExceeded() {} }, platform)
      for (const key of keys) await guard({ key }, {})
      return limiter
    },
  },
  {
    name: '`topKeys`',
    most: 1000,
    given: 750,
    async fill(keys) {
      const limiters = Array.from({ length: 10 }, () => quiet({ store: stateless('limit') }))
      const tops = limiters.map((limiter) => topKeys(limiter, { size: 100, window: '1d' }))
      for (const key of keys)
        for (const limiter of limiters)
          // As often as makes a sample of all calls as large as all.
          for (let i = 0; i < 32; i++) await limiter.consume(key)
      return [...limiters, ...tops]
    },
  },
  {
    name: '`keepDenials`',
    most: 1000,
    given: 5000,
    async fill(keys) {
      const limiter = quiet({ store: stateless('limit') })
      const denials = keepDenials({ secret: 'b7e151628aed2a6abf7158809cf4f3c7' })
      for (const key of keys) denials.keep(await limiter.consume(key))
      return [limiter, denials]
    },
  },
  {
    name: 'paused keys of clients',
    most: 10_000,
    given: 20_000,
    async fill(keys) {
      const limiter = quiet({ store: stateless() })
      const queue = createQueue({ limiter, pauseOf: () => 3_600_000 })
      for (const key of keys) await queue.run(() => Promise.reject(new Error('429')), { key }).catch(() => {})
      return [limiter, queue]
    },
  },
  {
    name: 'permits of semaphores',
    most: 500,
    given: 500,
    async fill(keys) {
      const semaphore = createSemaphore({ limit: 1 })
      const permits = []
      for (const key of keys) permits.push(await semaphore.acquire(key))
      return [semaphore, ...permits]
    },
  },
]

/** A limiter whose warnings are not printed. */
function quiet(options: Partial<LimiterOptions>): Limiter {
  const limiter = createLimiter({ name: 'long-keys', policies: POLICIES, ...options })
  limiter.on('warning', () => {})
  return limiter
}

const POLICIES = [gcra({ limit: 1, window: '1h', name: 'a' }), gcra({ limit: 1, window: '1d', name: 'b' })]
/** Limits under each of which four costs are remembered: twice as many as a key may hold. */
const TIERS = tiers(8)
/** As many limits as peeks at a key are kept under, and one. */
const PEEKED = tiers(17)
const PENALTY = { after: 1, block: '1h' } as const

/** Lists of two policies that differ in their limits. */
function tiers(count: number): readonly (readonly Policy[])[] {
  return Array.from({ length: count }, (_, tier) =>
    POLICIES.map((policy) => policy.with({ limit: 100 + tier, capacity: 100 + tier })),
  )
}

/** A store elsewhere that holds nothing itself, and gives each call the same answer. */
function stateless(reason?: 'limit', maxKeys = 1): Store {
  const now = (): number => Math.floor(performance.now() * 1000)
  const answer = (): Answer => {
    const at = now() + (reason ? HOUR_US : 0)
    const parts = [at, 0, at, at, 0, at]
    return {
      now: now(),
      at,
      reason,
      binding: 0,
      remaining: reason ? 0 : 1e6,
      resetAt: at,
      parts,
      booking: undefined,
    }
  }
  return {
    guard,
    denialCache: { maxAge: HOUR_US, maxKeys },
    keyspace: (_name, policies) => ({
      policies,
      decide: async () => answer(),
      confirm: async () => 'stands' as const,
      cancel: async () => true,
      correct: async () => 0,
    }),
    now,
    close() {},
  }
}

const HOUR_US = 3_600_000_000

interface Call {
  readonly key: string
}

const platform: Platform<Call, unknown> = {
  identity: (req) => req,
  address: () => '192.0.2.1',
  socketAddress: () => '192.0.2.1',
  method: () => 'GET',
  url: () => '/',
  header: () => undefined,
  headersSent: () => false,
  setHeader() {},
  setStatus() {},
  send() {},
  onFinished() {},
  proxySetting: '',
  handlerFrame: /never/,
}

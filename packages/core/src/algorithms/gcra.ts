import type { DeclarationOf } from '../values/options.js'
import { type Algorithm, capacity, factory, type PolicyFactory } from './contract/policy.js'
import { debt } from './debt/debt.js'
import { DEBT_POLICY, type DebtOptions, debtPolicy } from './debt/debt-policy.js'

export interface GcraOptions extends DebtOptions {
  /**
   * Most units at once, counting the first. 1 spreads calls evenly.
   * @default limit
   */
  readonly burst?: number
}

const GCRA = { ...DEBT_POLICY, burst: capacity } satisfies DeclarationOf<GcraOptions>

/**
 * Admits calls at an even rate of limit/window, up to `burst` of them at once. Any span of length s admits at most
 * burst + limit * s / window.
 * @throws {PolicyError} for an option that is not valid, or if burst x window exceeds 2^52, with the window in microseconds, or
 * in milliseconds if it is longer than an hour: larger products could not be counted exactly.
 * @example
 * import { createLimiter, gcra } from '@sluice/core'
 * // 100 a minute: up to 10 at once, then one each 600 ms.
 * const limiter = createLimiter({ policies: [gcra({ limit: 100, window: '1m', burst: 10 })] })
 * const { allowed } = await limiter.consume('user:42')
 */
export const gcra: PolicyFactory<GcraOptions> = /* @__PURE__ */ factory('gcra', GCRA, (settings) =>
  debtPolicy(algorithm, settings, 'burst', settings.burst),
)

/** The generic cell rate algorithm of ITU-T I.371, explained in debt/debt.ts. */
const algorithm: Algorithm = { name: 'gcra', ...debt }

import { ours } from './outbound.js'
import { type Provider, theirs } from './provider.js'
import { paint } from './table.js'
import { median, type Tally } from './tally.js'

export interface Summary {
  readonly text: string
  /** Whether every payment was made once, and never too many were under way. */
  readonly held: boolean
}

/** What was promised beside what the provider saw. */
export function summarize(tally: Tally, provider: Provider, spanMs: number): Summary {
  const all = tally.shares.reduce((sum, share) => sum + share, 0)
  const twice = [...provider.paid.values()].filter((times) => times > 1).length
  const checks: readonly (readonly [boolean, string])[] = [
    [tally.allPaid === all, `${tally.allPaid} of ${all} payments of the batch were made`],
    [twice === 0, `${twice} payments were made twice`],
    [
      provider.mostAtOnce <= ours.atOnce,
      `at most ${provider.mostAtOnce} calls at once, ${ours.atOnce} allowed`,
    ],
    [tally.failures.length === 0, `${tally.failures.length} payments failed`],
  ]
  const { batch, customer } = tally.tookMs
  const rate = (provider.paid.size / spanMs) * 1000
  const lines = [
    ...checks.map(([held, text]) => `  ${held ? paint('green', '✓') : paint('red', '✗')} ${text}`),
    `    ${rate.toFixed(1)} payments a second; the provider allows ${theirs.limit} in 10 s, and was out of order for a while`,
    `    ${provider.tooMany} x 429; ${provider.outOfOrder} x 503, after which the fleet paused`,
    `    median time of a payment: ${median(batch).toFixed(0)} ms in the batch, ${median(customer).toFixed(0)} ms for customers`,
    ...tally.failures.slice(0, 3).map((failure) => paint('red', `    ${failure}`)),
  ]
  return { text: ['Summary', '', ...lines].join('\n'), held: checks.every(([held]) => held) }
}

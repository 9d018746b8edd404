import { ours } from '@sluice/examples/payments/worker.js'
import { mark, paint, verdict } from '../terminal/paint.js'
import { medianSeconds, type Progress } from './progress.js'
import { OUT_OF_ORDER_MS, type Provider, theirs } from './provider.js'

export interface Summary {
  readonly text: string
  /** Whether every payment was made once, and never too many were in flight. */
  readonly held: boolean
}

/**
 * Compares what was promised with what the provider saw, as text. `spanMs` is how long the payments took; `stopped` is
 * whether Ctrl-C ended them early.
 */
export function summarize(progress: Progress, provider: Provider, spanMs: number, stopped: boolean): Summary {
  const { all, allPaid, failures, tookMs } = progress
  const twice = [...provider.paid.values()].filter((times) => times > 1).length
  const checks: readonly (readonly [boolean, string])[] = [
    [allPaid === all, `${allPaid} of ${all} payments of the batch were made`],
    [twice === 0, `${twice} payments were made twice`],
    [
      provider.mostAtOnce <= ours.atOnce,
      `at most ${provider.mostAtOnce} calls at once, where ${ours.atOnce} are allowed`,
    ],
    [failures.length === 0, `${failures.length} payments failed`],
  ]
  const rate = ((provider.paid.size / spanMs) * 1000).toFixed(1)
  const theirRate = (theirs.limit / theirs.windowMs) * 1000
  const outage = provider.hasBroken ? `, and was out of order for ${OUT_OF_ORDER_MS / 1000} s` : ''
  const failed = checks.filter(([each]) => !each).length
  const held = failed === 0
  const outcome = (): string => {
    if (held) return verdict(true, 'Every payment was made once, within the limits.')
    if (stopped && failed === 1 && allPaid < all)
      return paint('yellow', 'Stopped early, before every payment was made.')
    return verdict(false, `${failed} of ${checks.length} checks failed.`)
  }
  const lines = [
    ...checks.map(([each, text]) => `${mark(each)} ${text}`),
    '',
    ...[
      `${rate} payments a second; the provider takes ${theirRate}${outage}`,
      `${provider.tooMany} x 429; ${provider.outOfOrder} x 503${provider.hasBroken ? ', after which all workers paused' : ''}`,
      `median time: ${medianSeconds(tookMs.batch)} in the batch, ${medianSeconds(tookMs.customer)} for a customer`,
    ].map((line) => paint('dim', line)),
    ...failures.slice(0, 3).map((failure) => paint('red', failure)),
    '',
    outcome(),
  ]
  return { text: lines.join('\n'), held }
}

import { ours } from './outbound.js'
import { type Provider, theirs } from './provider.js'
import { bar, paint } from './table.js'
import { median, type Tally } from './tally.js'

/** How far each worker is, and what the provider sees. */
export function screen(title: string, tally: Tally, provider: Provider, width: number): readonly string[] {
  const barWidth = Math.max(10, Math.min(50, width - 30))
  const workers = tally.shares.map((share, i) => {
    const paid = tally.paid[i]!
    return `  worker ${i + 1}  ${bar(paid / share, barWidth)}  ${paid}/${share}`
  })
  return ['', title, '', ...workers, '', ...facts(tally, provider), '', paint('dim', 'Ctrl-C stops.')]
}

/** The same in one line, for logs and pipes. */
export function line(tally: Tally, provider: Provider): string {
  const { tooMany, outOfOrder, callsInWindow } = provider
  const all = tally.shares.reduce((sum, share) => sum + share, 0)
  return `${tally.allPaid}/${all} paid, ${callsInWindow} calls in the last 10 s, ${tooMany} x 429, ${outOfOrder} x 503`
}

function facts(tally: Tally, provider: Provider): readonly string[] {
  const calls = provider.callsInWindow
  const state = provider.broken
    ? paint('yellow', 'out of order: it asks for a pause')
    : paint('green', 'working')
  const { batch, customer } = tally.tookMs
  return [
    `  provider  ${state}`,
    `  calls in the last 10 s  ${bar(calls / theirs.limit, 20)} ${calls} of ${theirs.limit}`,
    `  refused   ${provider.tooMany} x 429, ${provider.outOfOrder} x 503; at most ${provider.mostAtOnce} of ${ours.atOnce} at once`,
    `  a payment took  ${seconds(median(batch))} in the batch, ${seconds(median(customer))} for a customer (medians)`,
  ]
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`
}

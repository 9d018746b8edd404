import { ours } from '@sluice/examples/payments/worker.js'
import { bar } from '../terminal/bar.js'
import { paint } from '../terminal/paint.js'
import type { View } from '../terminal/show.js'
import { type Column, roomFor, tableRow } from '../terminal/table.js'
import { medianSeconds, type Progress } from './progress.js'
import { type Provider, theirs } from './provider.js'

/** How far each worker is, and what the provider sees. */
export function view(title: string, progress: Progress, provider: Provider): View {
  return {
    title,
    screen: (width) => [...workers(progress, width), '', ...facts(progress, provider, width)],
    legend: [],
    lineHead: `The provider takes ${theirs.limit} calls in 10 s and ${ours.atOnce} at once:\n`,
    line(seconds) {
      const { tooMany, outOfOrder, callsInWindow } = provider
      const paid = `${progress.allPaid}/${progress.all} paid`
      const calls = `${callsInWindow} calls in the last 10 s`
      return `${seconds.padStart(5)} s  ${paid}, ${calls}, ${tooMany} x 429, ${outOfOrder} x 503`
    },
  }
}

/** A line for each worker: how many of its payments were made, as a bar and in numbers. */
function workers({ shares, paid }: Progress, width: number): readonly string[] {
  const [left, right] = [{ title: '', width: LABEL }, numbersOf(Math.max(...shares))]
  const room = roomFor([left, right], width, 10, 50)
  return shares.map((share, i) =>
    tableRow(
      [left, { title: '', width: room }, right],
      [`worker ${i + 1}`, bar(room, share, { allowed: paid[i]!, denied: 0 }), `${paid[i]} of ${share}`],
    ),
  )
}

/** The lines about the provider: whether it works, its load beside its limits, what it refused, and how long payments took. */
function facts(progress: Progress, provider: Provider, width: number): readonly string[] {
  const { callsInWindow, atOnce, mostAtOnce, tooMany, outOfOrder } = provider
  const columns: readonly Column[] = [
    { title: '', width: LABEL },
    { title: '', width: width - LABEL - 2 },
  ]
  const level = (count: number, limit: number): string =>
    `${bar(20, limit, { allowed: count, denied: 0 })}  ${count} of ${limit}`
  const state = provider.broken
    ? paint('yellow', 'out of order: it answers 503 and asks for a pause')
    : paint('green', 'works')
  const { batch, customer } = progress.tookMs
  const rows: readonly (readonly [string, string])[] = [
    ['provider', state],
    ['calls in 10 s', level(callsInWindow, theirs.limit)],
    ['calls at once', `${level(atOnce, ours.atOnce)}, ${mostAtOnce} at most`],
    ['refused', `${tooMany} x 429, ${outOfOrder} x 503`],
    ['median time', `${medianSeconds(batch)} in the batch, ${medianSeconds(customer)} for a customer`],
  ]
  return rows.map((row) => tableRow(columns, row))
}

const LABEL = 13

/** The column for `N of most`, as wide as its longest text. */
function numbersOf(most: number): Column {
  return { title: '', width: `${most} of ${most}`.length, align: 'right' }
}

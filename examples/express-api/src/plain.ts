import { routes } from './scenario.js'
import { type Column, tableHead, tableRow } from './table.js'
import { sum, type Tally } from './tally.js'

/** For logs and pipes: a line each second with the totals so far. Returns what prints the last one. */
export function printPlain(title: string, tallies: readonly Tally[]): () => void {
  const startedAt = performance.now()
  const columns: readonly Column[] = [
    { title: 'seconds', width: 7, align: 'right' },
    ...routes.map(({ path }): Column => ({ title: path, width: 9, align: 'right' })),
  ]

  function print(): void {
    const totals = routes.map((route) =>
      sum(tallies.filter((tally) => tally.route === route).map(({ total }) => total)),
    )
    const cells = totals.map(({ allowed, refused }) => `${allowed}/${refused}`)
    console.log(tableRow(columns, [((performance.now() - startedAt) / 1000).toFixed(1), ...cells]))
  }

  console.log(`${title}\n\nAllowed/refused so far:\n\n${tableHead(columns)}`)
  const timer = setInterval(print, 1000)
  return function finish(): void {
    clearInterval(timer)
    print()
  }
}

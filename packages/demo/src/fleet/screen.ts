import { sum } from '../tally.js'
import { bar, BAR_LEGEND } from '../terminal/bar.js'
import type { View } from '../terminal/show.js'
import { type Column, COUNT_COLUMNS, countCells, roomFor, tableHead, tableRow } from '../terminal/table.js'
import { LIMIT } from './check.js'
import type { Member } from './member.js'

/** Who asked for how much, what became of it in the last second, and what each got in all. */
export function view(title: string, redis: string, members: readonly Member[]): View {
  return {
    title,
    screen: (width) => screen(members, width),
    legend: [`${BAR_LEGEND} One key in ${redis}.`],
    lineHead: `One key in ${redis}. Allowed/denied so far, a column for each process:\n`,
    line(seconds) {
      const totals = members.map(({ tally: { total } }) => `${total.allowed}/${total.denied}`.padStart(9))
      return `${seconds.padStart(5)} s ${totals.join(' ')}`
    },
  }
}

/** The table of processes, fit to `width` columns of the terminal, with a row for all of them together. */
function screen(members: readonly Member[], width: number): readonly string[] {
  const now = Date.now()
  const all = sum(members.map(({ tally }) => tally.total))
  const seconds = members.map(({ tally }) => tally.lastSecond(now))
  const busiest = Math.max(10, ...seconds.map(({ allowed, denied }) => allowed + denied))
  const room = roomFor([...LEFT, ...RIGHT], width, 11, 50)
  const columns = [...LEFT, { title: 'last second', width: room }, ...RIGHT]
  const rows = members.map(({ pid, callsPerSecond, tally: { total } }, i) =>
    tableRow(columns, [
      String(pid),
      callsPerSecond > 0 ? String(callsPerSecond) : 'waits',
      bar(room, busiest, seconds[i]!),
      ...countCells(total),
      all.allowed > 0 ? `${Math.round((100 * total.allowed) / all.allowed)} %` : '',
    ]),
  )
  const totals = tableRow(columns, ['all', '', '', ...countCells(all), `of ${LIMIT}`])
  return [tableHead(columns), ...rows, totals]
}

const LEFT: readonly Column[] = [
  { title: 'process', width: 8 },
  { title: 'asks/s', width: 6, align: 'right' },
]
const RIGHT: readonly Column[] = [...COUNT_COLUMNS, { title: 'share', width: 6, align: 'right' }]

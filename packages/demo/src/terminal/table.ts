import type { Count } from '../tally.js'
import { paint, widthOf } from './paint.js'

export interface Column {
  readonly title: string
  readonly width: number
  readonly align?: 'right'
}

export const COUNT_COLUMNS: readonly Column[] = [
  { title: 'allowed', width: 7, align: 'right' },
  { title: 'denied', width: 7, align: 'right' },
]

/** The two cells of a row under COUNT_COLUMNS, green and red; a 0 is dim. */
export function countCells({ allowed, denied }: Count): readonly string[] {
  return [
    paint(allowed > 0 ? 'green' : 'dim', String(allowed)),
    paint(denied > 0 ? 'red' : 'dim', String(denied)),
  ]
}

/** The columns of the screen that a table's other columns and the gaps leave of `width`, but from `least` to `most`. */
export function roomFor(columns: readonly Column[], width: number, least: number, most: number): number {
  const taken = columns.reduce((sum, column) => sum + column.width + GAP.length, 0)
  return Math.min(most, Math.max(least, width - taken))
}

/** One line of a table: each cell padded to the width of its column. Cells that are missing are empty. */
export function tableRow(columns: readonly Column[], cells: readonly string[]): string {
  return columns
    .map(({ width, align }, i) => pad(cells[i] ?? '', width, align))
    .join(GAP)
    .trimEnd()
}

/** The line of a table that names its columns, dim. */
export function tableHead(columns: readonly Column[]): string {
  const titles = columns.map(({ title }) => title)
  return paint('dim', tableRow(columns, titles))
}

const GAP = '  '

/** The text with spaces behind it, or before it where it stands to the right, so that it takes `width` columns on the screen. */
function pad(text: string, width: number, align?: 'right'): string {
  const spaces = ' '.repeat(Math.max(0, width - widthOf(text)))
  return align === 'right' ? spaces + text : text + spaces
}

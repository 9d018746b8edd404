import { stripVTControlCharacters, styleText } from 'node:util'

export interface Column {
  readonly title: string
  readonly width: number
  readonly align?: 'right'
}

type Style = Parameters<typeof styleText>[0]

/** Colours a text where the terminal shows colours and NO_COLOR does not ask to leave them. */
export function paint(style: Style, text: string): string {
  return process.stdout.isTTY && process.stdout.hasColors() ? styleText(style, text) : text
}

/** One line, its cells two spaces apart. */
export function tableRow(columns: readonly Column[], cells: readonly string[]): string {
  return columns
    .map(({ width, align }, i) => pad(cells[i] ?? '', width, align))
    .join('  ')
    .trimEnd()
}

export function tableHead(columns: readonly Column[]): string {
  const titles = columns.map(({ title }) => title)
  return paint('dim', tableRow(columns, titles))
}

/** Columns that a text takes up on the screen, where colours take none. */
export function widthOf(text: string): number {
  return stripVTControlCharacters(text).length
}

/** No line may wrap where lines are drawn over. What is cut off loses its colours. */
export function cut(text: string, width: number): string {
  return widthOf(text) <= width ? text : stripVTControlCharacters(text).slice(0, width)
}

function pad(text: string, width: number, align?: 'right'): string {
  const spaces = ' '.repeat(Math.max(0, width - widthOf(text)))
  return align === 'right' ? spaces + text : text + spaces
}

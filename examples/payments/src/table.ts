import { stripVTControlCharacters, styleText } from 'node:util'

type Style = Parameters<typeof styleText>[0]

/** Colours a text where the terminal shows colours and NO_COLOR does not ask to leave them. */
export function paint(style: Style, text: string): string {
  return process.stdout.isTTY && process.stdout.hasColors() ? styleText(style, text) : text
}

/** Columns that a text takes up on the screen, where colours take none. */
export function widthOf(text: string): number {
  return stripVTControlCharacters(text).length
}

/** No line may wrap where lines are drawn over. What is cut off loses its colours. */
export function cut(text: string, width: number): string {
  return widthOf(text) <= width ? text : stripVTControlCharacters(text).slice(0, width)
}

/** A bar of `width` cells, of which a share is full. */
export function bar(share: number, width: number): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * width)
  return paint('green', '█'.repeat(full)) + paint('dim', '·'.repeat(width - full))
}

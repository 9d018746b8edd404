import { stripVTControlCharacters, styleText } from 'node:util'

type Style = Parameters<typeof styleText>[0]

/** Colours a text where the terminal shows colours and NO_COLOR does not ask to leave them. */
export function paint(style: Style, text: string): string {
  return process.stdout.isTTY && process.stdout.hasColors() ? styleText(style, text) : text
}

/** Whether something is as it should be: a green tick or a red cross. */
export function mark(held: boolean): string {
  return held ? paint('green', '✓') : paint('red', '✗')
}

/** The last line of a demo, green with a tick if its promises held, else red with a cross. */
export function verdict(held: boolean, text: string): string {
  return paint(held ? 'green' : 'red', `${held ? '✓' : '✗'} ${text}`)
}

/** Columns that a text takes up on the screen, where colours take none. */
export function widthOf(text: string): number {
  return stripVTControlCharacters(text).length
}

/** The text, cut to `width` columns if it is longer, and then without its colours: a line that wraps could not be drawn over. */
export function cut(text: string, width: number): string {
  return widthOf(text) <= width ? text : stripVTControlCharacters(text).slice(0, width)
}

/*
 * The door through which all text leaves. Logs, policy files and names of files are made by strangers: a control character moves
 * the cursor of a terminal, and a line such as `::error::` is a command to the CI that shows it.
 */

/** A line of text, which a terminal may show in bold or faint. */
export type TextLine = string | { readonly text: string; readonly style: 'bold' | 'faint' }

export const bold = (text: string): TextLine => ({ text, style: 'bold' })
export const faint = (text: string): TextLine => ({ text, style: 'faint' })

const CODES = { bold: 1, faint: 2 }

/**
 * Prints lines to a stream, without characters that could do harm. Removes the progress that `show` has left. Styles are printed
 * on terminals alone, and NO_COLOR is obeyed.
 */
export function print(stream: NodeJS.WriteStream, lines: readonly TextLine[]): void {
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
  const isColoured = stream.isTTY && !process.env.NO_COLOR
  const texts = lines.map((line) => {
    if (typeof line === 'string') return harmless(line)
    return isColoured ? `\u001b[${CODES[line.style]}m${harmless(line.text)}\u001b[0m` : harmless(line.text)
  })
  stream.write(`${texts.join('\n')}\n`)
}

let shownAt = Date.now()

/** Shows on a terminal (stderr) how far the work is, once a second at most. Each text takes the place of the one before. */
export function show(text: string): void {
  if (!process.stderr.isTTY || Date.now() < shownAt + 1000) return
  shownAt = Date.now()
  process.stderr.write(`\r${text}\u001b[K\r`)
}

/** A value as a line of JSON in which all that `harmless` would replace is escaped, so that a reader of JSON gets it as it was. */
export function asJson(value: unknown): string {
  const escaped = (text: string): string =>
    Array.from(
      { length: text.length },
      (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join('')
  return JSON.stringify(value).replace(/[\p{C}\p{Zl}\p{Zp}]|(?<=#)#/gu, escaped)
}

/**
 * A text of a log as it may be printed: characters that move the cursor, or turn the direction of what follows, become
 * `?`, and what is longer than `width` characters ends with `…`.
 */
export function printable(text: string, width = Infinity): string {
  const clean = text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?')
  return clean.length > width ? `${clean.slice(0, width - 1)}…` : clean
}

/**
 * A line that no CI takes for a command: `##vso[`, `##teamcity[` and `##[error]` anywhere, and at its beginning `::error::`, which is
 * not how an address such as `::/64` goes on, and `---` or `+++`.
 */
export const harmless = (line: string): string =>
  printable(line).replaceAll('##', '#?').replace(COMMAND, '$1?')
const COMMAND = /^(\s*)(?::(?=:(?:.*::|[\da-f:./]*[^\s\da-f:./]))|[-+~^](?=[-+~^]{2}))/i

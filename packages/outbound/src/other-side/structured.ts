/**
 * Splits a list as RFC 9651 writes it into its items, and each item into its parts: `"a, b";r=0;t=5, limit=9` becomes
 * `[['"a, b"', 'r=0', 't=5'], ['limit=9']]`. One pass over the text; separators in quotes are text. Items and
 * parts beyond the number that a sound reply has are dropped.
 */
export function itemsOf(list: string): readonly (readonly string[])[] {
  const items: string[][] = [[]]
  let start = 0
  let quoted = false
  for (let i = 0; i <= list.length; i++) {
    const code = i < list.length ? list.charCodeAt(i) : COMMA
    if (quoted && code === BACKSLASH) i++
    else if (code === QUOTE) quoted = !quoted
    else if ((!quoted && (code === COMMA || code === SEMICOLON)) || i === list.length) {
      const parts = items.at(-1)!
      if (parts.length < MOST_PARTS) parts.push(list.slice(start, i).trim())
      start = i + 1
      if (code === COMMA && items.length === MOST_ITEMS) break
      if (code === COMMA && i < list.length) items.push([])
    }
  }
  return items
}

/** The number of the part `name=number` among the parts of an item, the last one if there are several, or NaN. */
export function numberNamed(name: string, parts: readonly string[]): number {
  const value = parts.findLast((part) => part.startsWith(`${name}=`))?.slice(name.length + 1) ?? ''
  return value.length <= MOST_DIGITS && DIGITS.test(value) ? Number(value) : NaN
}

const [QUOTE, COMMA, SEMICOLON, BACKSLASH] = [34, 44, 59, 92]
const [MOST_ITEMS, MOST_PARTS] = [100, 20]
const MOST_DIGITS = 15
const DIGITS = /^\d+$/

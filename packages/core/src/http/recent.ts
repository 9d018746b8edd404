/**
 * Remembers what a pure function made of the texts that it got recently, such as the addresses of callers that send one
 * request after another. The last characters of a text choose its place, because texts differ there, and it replaces the
 * text that was there. Memory is thus bounded, and a text that is not remembered costs hardly more than without this.
 */
export function rememberRecent<T>(make: (text: string) => T): (text: string) => T {
  const texts = Array<string>(PLACES).fill('')
  const results = Array<T>(PLACES).fill(make(''))
  return (text) => {
    if (text.length > LONGEST) return make(text)
    const place = placeOf(text)
    if (texts[place] === text) return results[place]!
    const result = make(text)
    texts[place] = copyOf(text)
    results[place] = result
    return result
  }
}

/** Without this, a text that was cut out of a header would keep all of the header in memory. */
function copyOf(text: string): string {
  return ` ${text}`.slice(1)
}

const PLACES = 256
/** In UTF-16 units: no address is longer, and long texts fill no memory. */
const LONGEST = 64
/** Characters at the end of a text that choose its place. */
const MIXED = 6

function placeOf(text: string): number {
  let hash = 0
  for (let i = Math.max(0, text.length - MIXED); i < text.length; i++) {
    hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0
  }
  return hash & (PLACES - 1)
}

// The pieces that charts and pictures are drawn with. A picture is an SVG of 540 units that has a card of its own, so it stands on any
// background; its colours follow the reader's light or dark mode. No text is below 16 units: 10 pixels on a phone.

export const WIDTH = 540
export const MARGIN = 24

const FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
const CODE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace"

const STYLE = `
  .card { fill: #ffffff; stroke: #d8dee6 } .rest { fill: #e3e8ef } .band { fill: #fdf0dd } .line { stroke: #9aa5b5 }
  .title { fill: #14181f; font-weight: 650; font-size: 22px } .part { fill: #14181f; font-weight: 600; font-size: 17px } .name { fill: #14181f; font: 600 16px ${CODE} }
  .note { fill: #5c6675; font-size: 16.5px; font-weight: 400 } .value { fill: #14181f; font-weight: 650; font-size: 19px }
  .figure { fill: #14181f; font-size: 16px; font-variant-numeric: tabular-nums } .ours { fill: #0b7a55; font-weight: 650 }
  .good { fill: #12a06f } .own { fill: #4a6fdc } .none { fill: #98a4b5 } .over { fill: #b4540a } .bracket { stroke: #b4540a }
  @media (prefers-color-scheme: dark) {
    .card { fill: #12161d; stroke: #2b333f } .rest { fill: #262e3a } .band { fill: #2c2418 } .line { stroke: #5a6677 }
    .title, .part, .name, .value, .figure { fill: #eef2f7 } .note { fill: #a3adbb }
    .ours { fill: #4fd6a4 } .good { fill: #2fc48d } .own { fill: #7d9cff } .none { fill: #66758a } .over { fill: #f5a54a } .bracket { stroke: #f5a54a }
  }`

/**
 * A whole picture.
 * @param {string} alt Says in words what the picture shows.
 * @param {number} height
 * @param {readonly string[]} parts
 */
export function picture(alt, height, parts) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" font-family="${FONT}">`,
    `<title>${escaped(alt)}</title>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="card" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="12"/>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n')
}

/**
 * @param {string} style A class of the style sheet.
 * @param {number} x
 * @param {number} y Of the base line.
 * @param {string} content
 * @param {'start' | 'middle' | 'end'} [anchor]
 */
export function text(style, x, y, content, anchor = 'start') {
  const place = anchor === 'start' ? '' : ` text-anchor="${anchor}"`
  return `<text class="${style}" x="${round(x)}" y="${round(y)}"${place}>${escaped(content)}</text>`
}

/**
 * A name in code and a note behind it, as one line.
 * @param {number} y
 * @param {string} name
 * @param {string} note
 */
export function label(y, name, note) {
  const rest = `<tspan class="note" font-family="${FONT}" dx="9">${escaped(note)}</tspan>`
  return `<text class="name" x="${MARGIN}" y="${round(y)}">${escaped(name)}${rest}</text>`
}

/**
 * @param {string} style
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 */
export function box(style, x, y, width, height) {
  const radius = Math.min(1.5, height / 2)
  return `<rect class="${style}" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="${round(radius)}"/>`
}

/**
 * @param {string} style
 * @param {readonly [x: number, y: number]} from
 * @param {readonly [x: number, y: number]} to
 * @param {string} [dashes]
 */
export function line(style, [x1, y1], [x2, y2], dashes) {
  const dash = dashes ? ` stroke-dasharray="${dashes}"` : ''
  return `<path class="${style}" d="M${round(x1)} ${round(y1)}L${round(x2)} ${round(y2)}" stroke-width="1.5"${dash}/>`
}

/**
 * Boxes with what each colour means, in one line.
 * @param {number} y
 * @param {readonly (readonly [style: string, meaning: string, x: number])[]} entries
 */
export function legend(y, entries) {
  return entries.map(
    ([style, meaning, x]) => box(style, x, y - 11, 12, 12) + text('note', x + 19, y, meaning),
  )
}

/** @param {number} value */
function round(value) {
  return Number(value.toFixed(1))
}

/** @param {string} content */
function escaped(content) {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

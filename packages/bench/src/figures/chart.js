// Measured values as bars, in columns of panels. A card with a background of its own, whose colours follow the reader's
// light or dark mode; no script, and fonts that every system has.

/**
 * @typedef {object} Bar
 * @property {string} name
 * @property {number} value More is better.
 * @property {'sluice' | 'peer' | 'floor'} kind A floor limits nothing, or is what one would write by hand.
 *
 * @typedef {object} Panel Bars with one scale.
 * @property {string} title
 * @property {string} about What the values are.
 * @property {readonly Bar[]} bars
 *
 * @typedef {object} Chart
 * @property {string} title
 * @property {string} note Where and when it was measured.
 * @property {readonly Panel[]} panels
 */

const WIDTH = 920
const MARGIN = 28
const GAP = 40
const MOST_COLUMNS = 3
const HEAD = 78
const PANEL_HEAD = 48
const ROW = 36
const BETWEEN = 26
const FOOT = 44

const STYLE = `
  .card { fill: #ffffff; stroke: #d8dee6 } .track { fill: #eef1f5 }
  .title { fill: #14181f; font-weight: 650; font-size: 19px } .panel { fill: #14181f; font-weight: 600; font-size: 15px }
  .about, .note { fill: #667080; font-size: 12px } .name { fill: #3c4552; font-size: 12.5px }
  .value { fill: #3c4552; font-size: 12.5px; font-variant-numeric: tabular-nums } .ours { fill: #0b7a55; font-weight: 650 }
  .sluice { fill: #12a06f } .peer { fill: #93a1b5 } .floor { fill: #cdd5df }
  @media (prefers-color-scheme: dark) {
    .card { fill: #12161d; stroke: #2b333f } .track { fill: #1e252f }
    .title, .panel { fill: #eef2f7 } .about, .note { fill: #8d98a8 } .name, .value { fill: #c3ccd8 } .ours { fill: #4fd6a4 }
    .sluice { fill: #2fc48d } .peer { fill: #66758a } .floor { fill: #3d4856 }
  }`

/** @param {Chart} chart */
export function chartOf({ title, note, panels }) {
  const columns = Math.min(MOST_COLUMNS, panels.length)
  const width = (WIDTH - 2 * MARGIN - (columns - 1) * GAP) / columns
  /** @type {string[]} */
  const parts = []
  let top = HEAD
  for (let first = 0; first < panels.length; first += columns) {
    const row = panels.slice(first, first + columns)
    row.forEach((panel, i) => parts.push(panelAt(panel, MARGIN + i * (width + GAP), top, width)))
    top += PANEL_HEAD + Math.max(...row.map(({ bars }) => bars.length)) * ROW + BETWEEN
  }
  const height = top - BETWEEN + FOOT
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" font-family="ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="card" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="12"/>`,
    text('title', MARGIN, 42, title),
    ...parts,
    text('note', MARGIN, height - 18, note),
    '</svg>',
    '',
  ].join('\n')
}

/**
 * Highest value first.
 * @param {Panel} panel
 * @param {number} x
 * @param {number} y
 * @param {number} width
 */
function panelAt({ title, about, bars }, x, y, width) {
  const most = Math.max(...bars.map(({ value }) => value))
  const rows = bars
    .toSorted((one, other) => other.value - one.value)
    .map(({ name, value, kind }, i) => {
      const top = y + PANEL_HEAD + i * ROW
      const length = Math.max(3, (value / most) * width)
      const ours = kind === 'sluice' ? ' ours' : ''
      return [
        text(`name${ours}`, x, top + 12, name),
        text(`value${ours}`, x + width, top + 12, compact(value), 'end'),
        `<rect class="track" x="${x.toFixed(1)}" y="${top + 18}" width="${width.toFixed(1)}" height="7" rx="3.5"/>`,
        `<rect class="${kind}" x="${x.toFixed(1)}" y="${top + 18}" width="${length.toFixed(1)}" height="7" rx="3.5"/>`,
      ].join('')
    })
  return [text('panel', x, y + 12, title), text('about', x, y + 30, about), ...rows].join('\n')
}

/**
 * @param {string} style
 * @param {number} x
 * @param {number} y
 * @param {string} content
 * @param {'start' | 'end'} [anchor]
 */
function text(style, x, y, content, anchor = 'start') {
  const place = anchor === 'end' ? ' text-anchor="end"' : ''
  return `<text class="${style}" x="${x.toFixed(1)}" y="${y}"${place}>${escaped(content)}</text>`
}

/** Three digits that matter: 5.21 M, 207 k. @param {number} value */
function compact(value) {
  if (value >= 999_500) return `${(value / 1e6).toPrecision(3)} M`
  return value >= 1000 ? `${Number((value / 1000).toPrecision(3))} k` : String(Math.round(value))
}

/** @param {string} content */
function escaped(content) {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

// How something grows: the exponent of a curve, and its chart on logarithmic axes.
import { short } from './table.js'

/** @typedef {readonly (readonly [x: number, y: number])[]} Points */

/**
 * The k of y = c * x^k that fits best: 0 where y does not grow, 1 where it grows as x does.
 * @param {Points} points
 */
export function exponentOf(points) {
  const logs = points.map(([x, y]) => /** @type {const} */ ([Math.log(x), Math.log(y)]))
  const mean = (/** @type {0 | 1} */ axis) => logs.reduce((sum, point) => sum + point[axis], 0) / logs.length
  const [meanX, meanY] = [mean(0), mean(1)]
  const covariance = logs.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0)
  return covariance / logs.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
}

const WIDTH = 640
const HEIGHT = 340
const LEFT = 60
const RIGHT = 190
const TOP = 50
const BOTTOM = 40
const TEXT = '#808893'
const COLOURS = ['#2e9e6b', '#3b82c4', '#d9822b', '#9a5fc0']

/**
 * A line each, both axes logarithmic.
 * @param {string} title
 * @param {string} across What x is.
 * @param {Readonly<Record<string, Points>>} lines
 */
export function curveChart(title, across, lines) {
  const all = Object.values(lines).flat()
  const [x0, x1] = bounds(all.map(([x]) => x))
  const [y0, y1] = bounds(all.map(([, y]) => y))
  const place = (/** @type {readonly [number, number]} */ [x, y]) => [
    LEFT + ((Math.log10(x) - x0) / (x1 - x0)) * (WIDTH - LEFT - RIGHT),
    HEIGHT - BOTTOM - ((Math.log10(y) - y0) / (y1 - y0)) * (HEIGHT - TOP - BOTTOM),
  ]
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" font-family="sans-serif" font-size="12" fill="${TEXT}">`,
    `<title>${title}</title>`,
    `<text x="12" y="22" font-size="15" font-weight="bold">${title}</text>`,
    ...range(x0, x1).map((power) => {
      const [x = 0, y = 0] = place([10 ** power, 10 ** y0])
      return `<text x="${x}" y="${y + 18}" text-anchor="middle">10^${power}</text>`
    }),
    ...range(y0, y1).map((power) => {
      const [x = 0, y = 0] = place([10 ** x0, 10 ** power])
      const end = WIDTH - RIGHT
      return `<text x="${x - 8}" y="${y + 4}" text-anchor="end">${short(10 ** power)}</text><line x1="${x}" y1="${y}" x2="${end}" y2="${y}" stroke="${TEXT}" stroke-opacity="0.3"/>`
    }),
    `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 6}" text-anchor="middle">${across}</text>`,
    ...Object.entries(lines).map(([name, points], i) => {
      const colour = COLOURS[i % COLOURS.length]
      const [x = 0, y = 0] = place(points.at(-1) ?? [1, 1])
      const path = points
        .map((point) =>
          place(point)
            .map((one) => one.toFixed(1))
            .join(),
        )
        .join(' ')
      return `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/><text x="${x + 8}" y="${y + 4}" fill="${colour}">${name}</text>`
    }),
    '</svg>',
    '',
  ].join('\n')
}

/** The powers of ten around. @param {readonly number[]} values @returns {[number, number]} */
function bounds(values) {
  const low = Math.floor(Math.log10(Math.min(...values)))
  return [low, Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))))]
}

/**
 * @param {number} from
 * @param {number} to
 */
function range(from, to) {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}

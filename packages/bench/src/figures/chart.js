// A bar a goal, as long as the goal is reached; the line is the goal. Longer is better, whatever is counted. Colours
// that read on white and on black, no style sheet, no script.
import { isMet, reach } from './goals.js'
import { short } from './table.js'

/** @typedef {import('./goals.js').Goal} Goal */

const WIDTH = 900
const LABEL = 400
const ROW = 22
const TOP = 54
/** Bars end here, however much is reached. */
const MOST = 2.5
const SCALE = (WIDTH - LABEL - 90) / MOST

const TEXT = '#808893'
const MET = '#2e9e6b'
const MISSED = '#d9822b'

/**
 * @param {string} title
 * @param {readonly Goal[]} goals
 */
export function chartOf(title, goals) {
  const height = TOP + goals.length * ROW + 16
  const goalLine = LABEL + SCALE
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="12" fill="${TEXT}">`,
    `<title>${escaped(title)}: how far each goal is reached</title>`,
    `<text x="12" y="22" font-size="15" font-weight="bold">${escaped(title)}: how far each goal is reached</text>`,
    `<text x="${goalLine}" y="42" text-anchor="middle">goal</text>`,
    ...goals.map(barOf),
    `<line x1="${goalLine}" y1="${TOP - 6}" x2="${goalLine}" y2="${height - 12}" stroke="${TEXT}" stroke-dasharray="3 3"/>`,
    '</svg>',
    '',
  ].join('\n')
}

/**
 * @param {Goal} goal
 * @param {number} row
 */
function barOf(goal, row) {
  const y = TOP + row * ROW
  const reached = reach(goal)
  const length = Math.max(1, Math.min(reached, MOST) * SCALE)
  const figure = goal.against ? `${short(goal.value)} x` : `${short(goal.value)} ${goal.unit}`
  return [
    `<text x="${LABEL - 10}" y="${y + 13}" text-anchor="end">${escaped(goal.path)}</text>`,
    `<rect x="${LABEL}" y="${y + 2}" width="${length.toFixed(1)}" height="${ROW - 7}" rx="2" fill="${isMet(goal) ? MET : MISSED}"/>`,
    `<text x="${(LABEL + length + 6).toFixed(1)}" y="${y + 13}">${escaped(figure)}${reached > MOST ? ' &#8594;' : ''}</text>`,
  ].join('')
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

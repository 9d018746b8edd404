// Measured values as bars: a line a contender, and in a line the bars of one panel, or of two that have the same contenders.
import { box, MARGIN, picture, text, WIDTH } from './drawing.js'

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
 * @typedef {readonly [Panel, ...Panel[]]} Group One or two.
 *
 * @typedef {object} Chart
 * @property {string} title
 * @property {readonly string[]} notes Where and when it was measured.
 * @property {readonly Panel[]} panels
 */

const HEAD = 88
const GROUP_HEAD = 56
const ROW = 24
const BETWEEN = 26
const NOTE = 22
/** Room for a character of a name, for a value, and for a bar with its value. */
const CHARACTER = { usual: 8.6, ours: 9.6 }
const VALUE = 68
const COLUMN = 120
const GAP = 18

/** @type {Readonly<Record<Bar['kind'], string>>} */
const STYLES = { sluice: 'good', peer: 'none', floor: 'rest' }

/** @param {Chart} chart */
export function chartOf({ title, notes, panels }) {
  const parts = [text('title', MARGIN, 44, title), text('note', MARGIN, 70, 'More is better.')]
  let top = HEAD
  for (const group of groupsOf(panels)) {
    parts.push(...groupAt(group, top))
    top += GROUP_HEAD + namesOf(group).length * ROW + BETWEEN
  }
  notes.forEach((note, i) => parts.push(text('note', MARGIN, top + 8 + i * NOTE, note)))
  return picture(title, top + notes.length * NOTE + 8, parts)
}

/** A panel, and the next one with it where it has nearly the same contenders. @param {readonly Panel[]} panels */
function groupsOf(panels) {
  /** @type {[Panel, ...Panel[]][]} */
  const groups = []
  for (const panel of panels) {
    const last = groups.at(-1)
    const names = new Set(panel.bars.map(({ name }) => name))
    const isAlike = last?.length === 1 && namesOf(last).filter((name) => !names.has(name)).length <= 1
    if (last && isAlike && startOf([...last, panel]) + 2 * COLUMN + GAP <= WIDTH - MARGIN) last.push(panel)
    else groups.push([panel])
  }
  return groups
}

/** Highest value of the first panel first. @param {Group} group */
function namesOf(group) {
  const bars = group.flatMap((panel) => panel.bars.toSorted((one, other) => other.value - one.value))
  return [...new Set(bars.map(({ name }) => name))]
}

/** Where the bars of a group begin. @param {Group} group */
function startOf(group) {
  const bars = group.flatMap((panel) => panel.bars)
  const widths = bars.map(
    ({ name, kind }) => name.length * (kind === 'sluice' ? CHARACTER.ours : CHARACTER.usual),
  )
  return MARGIN + Math.max(...widths) + GAP
}

/** @param {Group} group @param {number} y */
function groupAt(group, y) {
  const names = namesOf(group)
  const start = startOf(group)
  const width = (WIDTH - MARGIN - start - (group.length - 1) * GAP) / group.length
  const [{ title, about }] = group
  const [head, ...heads] = group.length > 1 ? [about, ...group.map((panel) => panel.title)] : [title, about]
  const columns = group.flatMap((panel, i) => columnAt(panel, names, start + i * (width + GAP), y, width))
  return [
    text('part', MARGIN, y + 16, head),
    ...heads.map((each, i) => text('note', start + i * (width + GAP) + width, y + 40, each, 'end')),
    ...names.map((name, i) => text(styleOf('note', kindOf(group, name)), MARGIN, baseOf(y, i), name)),
    ...columns,
  ]
}

/**
 * @param {Panel} panel
 * @param {readonly string[]} names
 * @param {number} x
 * @param {number} y
 * @param {number} width
 */
function columnAt({ bars }, names, x, y, width) {
  const most = Math.max(...bars.map(({ value }) => value))
  return bars.flatMap(({ name, value, kind }) => {
    const base = baseOf(y, names.indexOf(name))
    return [
      box(STYLES[kind], x, base - 10, Math.max(3, (value / most) * (width - VALUE)), 9),
      text(styleOf('figure', kind), x + width, base, compact(value), 'end'),
    ]
  })
}

/** @param {number} y @param {number} i */
function baseOf(y, i) {
  return y + GROUP_HEAD + 8 + i * ROW
}

/** @param {Group} group @param {string} name */
function kindOf(group, name) {
  return group.flatMap(({ bars }) => bars).find((bar) => bar.name === name)?.kind
}

/** @param {string} style @param {Bar['kind']} [kind] */
function styleOf(style, kind) {
  return kind === 'sluice' ? `${style} ours` : style
}

/** Three digits that matter: 5.21 M, 207 k. @param {number} value */
function compact(value) {
  if (value >= 999_500) return `${(value / 1e6).toPrecision(3)} M`
  return value >= 1000 ? `${Number((value / 1000).toPrecision(3))} k` : String(Math.round(value))
}

import type { Model, Rule, Write } from '../rule.js'
import { model as fixedWindow } from './fixed-window.js'

const { leased: _, ...unleased } = fixedWindow as Model

/** Wide window: what a fixed window of twice or three times the length promises. */
export const model: Model = {
  ...unleased,
  variants: [{ width: 'triple' }],
  recount: (writes) =>
    fixedWindow.recount(writes.map((write): Write => ({ ...write, rule: wide(write.rule) }))),
  room: (count, rule, instant) => fixedWindow.room(count as never, wide(rule), instant),
  kept: (count, rule, instant) => fixedWindow.kept(count as never, wide(rule), instant),
  bound: (rule, from, to) => fixedWindow.bound(wide(rule), from, to),
}

/** The rule of the fixed window. */
function wide(rule: Rule): Rule {
  return { ...rule, window: rule.window * (rule.options['width'] === 'triple' ? 3n : 2n) }
}

import type { Count } from '../tally.js'
import { paint } from './paint.js'

export const BAR_LEGEND = '█ allowed ░ denied.'

/** A bar of `width` cells that stand for `whole` units. What is there is drawn, however little of the whole it is. */
export function bar(width: number, whole: number, { allowed, denied }: Count): string {
  const count = allowed + denied
  const full = count > 0 ? Math.min(width, Math.max(1, Math.round((count / whole) * width))) : 0
  const share = Math.min(allowed > 0 ? full - 1 : full, Math.round((denied / count) * full))
  const red = denied > 0 ? Math.max(1, share) : 0
  return [
    paint('green', '█'.repeat(full - red)),
    paint('red', '░'.repeat(red)),
    paint('dim', '·'.repeat(width - full)),
  ].join('')
}

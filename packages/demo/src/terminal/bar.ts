import type { Count } from '../tally.js'
import { paint } from './paint.js'

export const BAR_LEGEND = '█ allowed ░ denied.'

/**
 * A bar of `width` characters, of which all stand for `whole` units: the allowed ones green, the denied ones red, the rest dots. A
 * count above 0 gets one character at least, however small a part of the whole it is.
 */
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

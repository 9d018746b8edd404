import { backOff } from '../../../values/back-off.js'

/**
 * Returns a function that makes an attempt now, and after each failure another: first after a second at most, later after up to a
 * minute, as what a server refuses it may refuse for good. The other function ends that. The timer keeps no process alive.
 */
export function untilDone(attempt: () => Promise<unknown>): Record<'start' | 'end', () => void> {
  let isEnded = false
  let failures = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const attempted = async (): Promise<unknown> => attempt()
  const start = (): void => {
    clearTimeout(timer)
    if (isEnded) return
    attempted().then(
      () => (failures = 0),
      () => {
        clearTimeout(timer)
        timer = setTimeout(start, backOff(FIRST_MS, failures++, LONGEST_MS)).unref()
      },
    )
  }
  const end = (): void => {
    isEnded = true
    clearTimeout(timer)
  }
  return { start, end }
}

const FIRST_MS = 1000
const LONGEST_MS = 60_000

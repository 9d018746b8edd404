/**
 * Returns a function that makes an attempt now, and another a second after each that fails; and one that ends that. The timer keeps no
 * process alive.
 */
export function untilDone(attempt: () => Promise<unknown>): Record<'start' | 'end', () => void> {
  let isEnded = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const start = (): void => {
    clearTimeout(timer)
    if (isEnded) return
    attempt().catch(() => {
      clearTimeout(timer)
      timer = setTimeout(start, RETRY_MS).unref()
    })
  }
  const end = (): void => {
    isEnded = true
    clearTimeout(timer)
  }
  return { start, end }
}

const RETRY_MS = 1000

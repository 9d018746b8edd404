/** Asks again and again until `condition` holds; one that throws does not hold yet. Rejects with `what` after `ms`. */
export async function until(what: string, condition: () => unknown, ms = 30_000): Promise<void> {
  const deadline = performance.now() + ms
  for (;;) {
    const failure = await attempt(condition)
    if (failure === undefined) return
    if (performance.now() > deadline) {
      throw new Error(`waited ${ms} ms for ${what}`, { cause: failure })
    }
    await pause(POLL_MS)
  }
}

/** Resolves after so many milliseconds. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Asks once. Returns undefined if the condition holds, else why not: its error, or 'not yet'. */
async function attempt(condition: () => unknown): Promise<unknown> {
  try {
    return (await condition()) ? undefined : 'not yet'
  } catch (error) {
    return error
  }
}

const POLL_MS = 15

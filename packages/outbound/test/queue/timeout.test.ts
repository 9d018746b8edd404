import { createSemaphore } from '@sluice/core'
import { open, outcome, pass, sleep, useFakeTime } from './open-queue.js'

useFakeTime()

describe('timeout of a run', () => {
  it('begins with the run, rejects the call and aborts its signal at once', async () => {
    const { queue, add } = open({ semaphore: createSemaphore({ limit: 1 }) }, 100)
    add('a')
    let aborted: unknown
    const call = outcome(
      queue.run(
        ({ signal }) =>
          new Promise((resolve) => {
            signal!.addEventListener('abort', () => void (aborted = signal!.reason))
            setTimeout(resolve, 500)
          }),
        { timeout: 50 },
      ),
    )
    await pass(149)
    expect(call).toEqual({})
    await pass(1)
    expect(call.error).toMatchObject({ name: 'TimeoutError' })
    expect(aborted).toBe(call.error)
  })

  it('does not hide that the caller aborted as the call started', async () => {
    const { queue } = open({})
    const controller = new AbortController()
    queue.on('started', () => controller.abort())
    let seen: AbortSignal | undefined
    const run = queue.run(async ({ signal }) => void (seen = signal), {
      timeout: 50,
      signal: controller.signal,
    })
    const call = outcome(run)
    await pass(10)
    expect([seen?.aborted, call.error]).toEqual([true, undefined])
  })

  it('keeps the permit until the function has settled', async () => {
    const semaphore = createSemaphore({ limit: 1 })
    const { queue, add, at } = open({ semaphore })
    outcome(queue.run(() => sleep(500), { timeout: 50 }))
    add('next')
    await pass(499)
    expect([queue.pending, at()]).toEqual([1, []])
    await pass(1)
    expect([queue.pending, at()]).toEqual([0, [500]])
  })

  it('is no reason for another attempt', async () => {
    const attempts: number[] = []
    const { queue } = open({ retry: () => 0 })
    const call = outcome(
      queue.run(
        async ({ attempt }) => {
          attempts.push(attempt)
          await sleep(100)
          throw new Error('late')
        },
        { timeout: 50 },
      ),
    )
    await pass(1000)
    expect([attempts, call.error.name]).toEqual([[1], 'TimeoutError'])
  })

  it('counts for each attempt, and not while the call waits', async () => {
    const { queue } = open({ retry: (_error, attempt) => attempt < 3 && 200 })
    const call = outcome(
      queue.run(
        async ({ attempt }) => {
          await sleep(40)
          if (attempt < 3) throw new Error('again')
          return attempt
        },
        { timeout: 50 },
      ),
    )
    await pass(1000)
    expect(call.value).toBe(3)
  })

  it('leaves the signal of the call to abort the function too', async () => {
    const { queue } = open({ semaphore: createSemaphore({ limit: 1 }) })
    const controller = new AbortController()
    let inside: AbortSignal | undefined
    const run = ({ signal }: { signal: AbortSignal | undefined }) => ((inside = signal), sleep(100))
    const call = outcome(queue.run(run, { timeout: 50, signal: controller.signal }))
    await pass(10)
    controller.abort(new Error('stop'))
    expect(inside!.reason).toEqual(new Error('stop'))
    await pass(40)
    expect(call.error).toMatchObject({ name: 'TimeoutError' })
    await pass(100)
  })
})

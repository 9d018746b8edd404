import { Deadline } from '../../src/resilience/deadline.js'

const never = new Promise<never>(() => {})

describe('a deadline', () => {
  beforeEach(() => jest.useFakeTimers())
  afterEach(() => jest.useRealTimers())

  it('ends at its time for each call, and not before', async () => {
    const deadline = new Deadline(80)
    const ended: string[] = []
    const wait = (name: string) =>
      deadline.within(never).catch(({ code }: { code: string }) => ended.push(`${name} ${code}`))
    void wait('first')
    await jest.advanceTimersByTimeAsync(30)
    void wait('second')
    await jest.advanceTimersByTimeAsync(49)
    expect(ended).toEqual([])
    await jest.advanceTimersByTimeAsync(1)
    expect(ended).toEqual(['first STORE_TIMEOUT'])
    await jest.advanceTimersByTimeAsync(30)
    expect(ended).toEqual(['first STORE_TIMEOUT', 'second STORE_TIMEOUT'])
  })

  it('gives answers and errors that come in time as they are', async () => {
    const deadline = new Deadline(80)
    expect(await deadline.within(Promise.resolve(1))).toBe(1)
    await expect(deadline.within(Promise.reject(new Error('no')))).rejects.toThrow('no')
  })

  it('goes on for others when an answer comes too late', async () => {
    const deadline = new Deadline(80)
    let answer = (): void => {}
    const late = deadline.within(new Promise<void>((resolve) => (answer = resolve)))
    const codes: string[] = []
    const wait = (waited: Promise<unknown>) => waited.catch(({ code }: { code: string }) => codes.push(code))
    void wait(late)
    await jest.advanceTimersByTimeAsync(40)
    void wait(deadline.within(never))
    void wait(deadline.within(never))
    await jest.advanceTimersByTimeAsync(40)
    answer()
    await jest.advanceTimersByTimeAsync(40)
    expect(codes).toEqual(['STORE_TIMEOUT', 'STORE_TIMEOUT', 'STORE_TIMEOUT'])
  })

  it('needs one timer for all calls, which keeps no process alive when nobody waits', async () => {
    const begin = jest.spyOn(globalThis, 'setTimeout')
    const deadline = new Deadline(80)
    const answers = Array.from({ length: 100 }, () => deadline.within(Promise.resolve()))
    const timer = begin.mock.results[0]!.value as NodeJS.Timeout
    expect(timer.hasRef()).toBe(true)
    await Promise.all(answers)
    expect(timer.hasRef()).toBe(false)
    const late = deadline.within(never).catch((error: unknown) => error)
    expect(timer.hasRef()).toBe(true)
    expect(begin).toHaveBeenCalledTimes(1)
    await jest.advanceTimersByTimeAsync(80)
    expect(await late).toMatchObject({ code: 'STORE_TIMEOUT' })
    expect(jest.getTimerCount()).toBe(0)
  })
})

describe('a process that stood still itself', () => {
  it('reads what has arrived meanwhile before it gives up', async () => {
    const deadline = new Deadline(10)
    const answer = new Promise((resolve) => setImmediate(() => resolve('in time')))
    const heard = deadline.within(answer)
    const end = performance.now() + 40
    while (performance.now() < end); // busy
    expect(await heard).toBe('in time')
  })
})

import { Deadline, type DeadlineEntry } from '../../src/resilience/deadline.js'

const never = new Promise<never>(() => {})

/** What `answer` gives, if it does in time. */
function within<T>(deadline: Deadline, answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const entry: DeadlineEntry = {
      since: performance.now(),
      endsAt: 0,
      before: undefined,
      after: undefined,
      expire: reject,
    }
    deadline.begin(entry)
    const end = (settle: () => void) => () => (deadline.end(entry), settle())
    answer.then(
      (value) => end(() => resolve(value))(),
      (error: Error) => end(() => reject(error))(),
    )
  })
}

function busy(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

describe('a deadline', () => {
  beforeEach(() => jest.useFakeTimers())
  afterEach(() => jest.useRealTimers())

  it('ends at its time for each call, and not before', async () => {
    const deadline = new Deadline(80)
    const ended: string[] = []
    const wait = (name: string) =>
      within(deadline, never).catch(({ code }: { code: string }) => ended.push(`${name} ${code}`))
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

  it('passes on answers and errors that come in time', async () => {
    const deadline = new Deadline(80)
    expect(await within(deadline, Promise.resolve(1))).toBe(1)
    await expect(within(deadline, Promise.reject(new Error('no')))).rejects.toThrow('no')
  })

  it('continues for other calls when an answer comes too late', async () => {
    const deadline = new Deadline(80)
    let answer = (): void => {}
    const late = within(deadline, new Promise<void>((resolve) => (answer = resolve)))
    const codes: string[] = []
    const wait = (waited: Promise<unknown>) => waited.catch(({ code }: { code: string }) => codes.push(code))
    void wait(late)
    await jest.advanceTimersByTimeAsync(40)
    void wait(within(deadline, never))
    void wait(within(deadline, never))
    await jest.advanceTimersByTimeAsync(40)
    answer()
    await jest.advanceTimersByTimeAsync(40)
    expect(codes).toEqual(['STORE_TIMEOUT', 'STORE_TIMEOUT', 'STORE_TIMEOUT'])
  })

  it('uses one timer for all calls, which does not keep an idle process alive', async () => {
    const begin = jest.spyOn(globalThis, 'setTimeout')
    const deadline = new Deadline(80)
    const answers = Array.from({ length: 100 }, () => within(deadline, Promise.resolve()))
    const timer = begin.mock.results[0]!.value as NodeJS.Timeout
    expect(timer.hasRef()).toBe(true)
    await Promise.all(answers)
    expect(timer.hasRef()).toBe(false)
    const late = within(deadline, never).catch((error: unknown) => error)
    expect(timer.hasRef()).toBe(true)
    expect(begin).toHaveBeenCalledTimes(1)
    await jest.advanceTimersByTimeAsync(80)
    expect(await late).toMatchObject({ code: 'STORE_TIMEOUT' })
    expect(jest.getTimerCount()).toBe(0)
  })
})

describe('a process that was busy', () => {
  it('reads what has arrived meanwhile before it ends a call', async () => {
    const deadline = new Deadline(20)
    let heard: Promise<unknown>
    await new Promise<void>((begin) => {
      setTimeout(() => {
        heard = within(deadline, new Promise((resolve) => setImmediate(() => resolve('in time'))))
        begin()
      })
    })
    // The timer of the deadline is due before anything is read.
    busy(80)
    expect(await heard!).toBe('in time')
  })

  it('counts the time of a call from the end of the turn in which it was made', async () => {
    const deadline = new Deadline(500)
    const sent = new Promise<void>((resolve) => setImmediate(resolve))
    const answer = sent.then(() => new Promise((resolve) => setTimeout(() => resolve('in time'), 10)))
    const heard = within(deadline, answer)
    busy(600)
    expect(await heard).toBe('in time')
  })

  it('counts the time in which other calls were answered only as far as it was idle', async () => {
    const traffic = { answered: 0, waiting: 1 }
    const deadline = new Deadline(30, traffic)
    let outcome: unknown = 'waits'
    const heard = within(deadline, never).catch(({ code }: { code: string }) => (outcome = code))
    for (let turn = 0; turn < 20; turn++) {
      await new Promise(setImmediate)
      traffic.answered++
      busy(5)
    }
    expect(outcome).toBe('waits')
    traffic.waiting = 0
    expect(await heard).toBe('STORE_TIMEOUT')
  })

  it('counts all of its time while nothing is answered', async () => {
    const deadline = new Deadline(30, { answered: 0, waiting: 1 })
    const heard = within(deadline, never).catch(({ code }: { code: string }) => code)
    let outcome: unknown
    void heard.then((code) => (outcome = code))
    for (let turn = 0; turn < 1000 && outcome === undefined; turn++) {
      await new Promise(setImmediate)
      busy(2)
    }
    expect(outcome).toBe('STORE_TIMEOUT')
  })
})

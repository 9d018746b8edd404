import { Trace } from '../src/trace/trace.js'

/** Calls by turns of callers whose numbers put them into one part, in order of time; each costs its caller's number. */
function traceOf(callers: readonly number[], calls: number): Trace {
  const trace = new Trace()
  for (let i = 0; i < calls; i++) {
    const caller = callers[i % callers.length]!
    trace.add(caller, i, caller)
  }
  return trace
}

/** For each caller in turn: its calls that came with its cost and after the one before, and the room that they had. */
async function visited(trace: Trace): Promise<readonly (readonly number[])[]> {
  const found: number[][] = []
  await trace.forEach([found], (list, { caller, times, costs, from, to }) => {
    let inOrder = 0
    for (let i = from; i < to; i++)
      if (costs[i] === caller && !(i > from && times[i - 1]! >= times[i]!)) inOrder++
    list.push([caller, to - from, inOrder, times.length])
  })
  return found
}

describe('the calls of a part', () => {
  const room = 2 ** 18

  it('are read in the same room, however many they are', async () => {
    const calls = room - 1
    expect(await visited(traceOf([0, 64, 128], 3 * calls))).toEqual([
      [0, calls, calls, room],
      [64, calls, calls, room],
      [128, calls, calls, room],
    ])
    expect(await visited(traceOf([0, 64, 128], 300_000))).toEqual([
      [0, 100_000, 100_000, room],
      [64, 100_000, 100_000, room],
      [128, 100_000, 100_000, room],
    ])
  })

  it('have a larger room where one caller alone has more', async () => {
    expect(await visited(traceOf([0], room + 1))).toEqual([[0, room + 1, room + 1, room + 1]])
  })
})

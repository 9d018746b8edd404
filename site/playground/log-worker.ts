import { readLogs, Spread, suggest, type SuggestReport } from '@sluice/cli'
import { shopLog } from '../../packages/bench/src/logs/sample.js'
import { bytesOf } from './log-bytes.js'
import { boundedShelf, countsOf, problemOf, scenarioOf } from './log-calls.js'

/*
 * The worker that reads a log, as the command line does. The log stays here: the page gets counts, and the names of the callers that
 * it shows.
 */

/** What the page asks: to read a log, to stop what is being done, for calls, or for the highest peaks in a window. Each answer has the id of its question. */
type LogQuestion = { readonly id: number } & (
  { readonly open: File | 'sample' } | { readonly stop: true } | CallsQuestion | { readonly windowMs: number }
)

/** For the calls of one caller around his peak in a window, under a limit. */
interface CallsQuestion {
  readonly callsOf: string
  readonly windowMs: number
  readonly limit: number
}

type Tell = (answer: object) => void

/** Limits as the command line tries them. */
const WINDOWS = [1000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000]
/** Of calls, 16 each, in the memory of a tab. */
const MOST_BYTES = 2 ** 30

let log: File
let report: SuggestReport | undefined
/** The pieces of the log of which the report is. */
let judged = Infinity
/** What is being done, in steps that can be stopped: the log is read, its calls are decided. */
let steps: AbortController[] = []

addEventListener('message', ({ data }: MessageEvent<LogQuestion>) => {
  const tell: Tell = (answer) => postMessage({ id: data.id, ...answer })
  if ('stop' in data) steps[0]?.abort()
  else if ('open' in data || 'callsOf' in data) {
    for (const step of steps) step.abort()
    const answered = 'open' in data ? open(data.open, tell) : play(data, tell)
    answered.catch((error: Error) => tell({ problem: problemOf(error, log.name) }))
  } else {
    const found = report?.windows.find(({ windowMs }) => windowMs === data.windowMs)
    tell({ windowMs: data.windowMs, highest: found?.highest ?? [] })
  }
})

/** Reads a log. Once the reading is stopped, what was read is decided, which can be stopped too. */
async function open(given: File | 'sample', tell: Tell): Promise<void> {
  log = given === 'sample' ? new File([...shopLog()], 'sample.log') : given
  report = undefined
  const [reading, deciding] = [new AbortController(), new AbortController()]
  const own = (steps = [reading, deciding])
  let pieces = 0
  const logs = await logsOf(reading.signal, (part) => {
    pieces++
    tell({ doing: 'Reading', progress: part / 2 })
  })
  const found = await suggest(logs, {
    windows: WINDOWS,
    algorithm: 'slidingLog',
    untouched: 99.9,
    shelf: boundedShelf(MOST_BYTES, (times) => {
      if (times === 0) own.shift()
      tell({ doing: 'Deciding the calls of', progress: (2 + times) / 4 })
    }),
    signal: deciding.signal,
  })
  if (steps !== own) return // another log was opened
  report = found
  judged = reading.signal.aborted ? pieces : Infinity
  tell(countsOf(found, !reading.signal.aborted))
}

/** The calls of one caller as a scenario. The log is read once more, as far as it was judged, because it is not kept. */
async function play({ callsOf, windowMs, limit }: CallsQuestion, tell: Tell): Promise<void> {
  const reading = new AbortController()
  steps = [reading]
  let pieces = 0
  const logs = await logsOf(reading.signal, (progress) => {
    if (++pieces === judged) reading.abort()
    tell({ doing: 'Reading once more', progress })
  })
  const spread = new Spread(logs)
  const times: number[] = []
  const take = (calls: ReturnType<Spread['end']>): void => {
    for (const call of calls) if (call.keys[0] === callsOf) times.push(call.at / 1000)
  }
  for await (const batch of logs.batches) take(spread.add(batch))
  take(spread.end())
  const isStopped = reading.signal.aborted && pieces < judged
  tell(isStopped ? {} : { scenario: scenarioOf(times, windowMs, limit) })
}

/** The log, which is being read. `next` is called before each piece of it with the part that was read. */
function logsOf(signal: AbortSignal, next: (part: number) => void): ReturnType<typeof readLogs> {
  return readLogs([{ name: log.name, chunks: bytesOf(log, next) }], { selectors: [{}], signal })
}

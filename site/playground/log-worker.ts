import { readLogs, Spread, suggest, type SuggestReport } from '@sluice/cli'
import { shopLog } from '../../packages/bench/src/logs/sample.js'
import { bytesOf } from './log-bytes.js'
import { boundedShelf, countsOf, problemOf, scenarioOf } from './log-calls.js'

/*
 * The worker that reads a log, as the command line does. The log stays here: the page gets counts, and the names of the callers that
 * it shows. What is being done ends with the worker.
 */

/** What the page asks: to read a log, or for the callers with the highest peaks in a window of the log that was read. */
type LogQuestion =
  { readonly log: File | 'sample'; readonly calls?: CallsQuestion } | { readonly windowMs: number }

/** For the calls of one caller around his peak in a window, under a limit, in place of the counts. */
interface CallsQuestion {
  readonly caller: string
  readonly windowMs: number
  readonly limit: number
}

/** Limits as the command line tries them. */
const WINDOWS = [1000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000]
/** Of calls, 16 each, and of what each caller takes, in the memory of a tab. */
const MOST_BYTES = 2 ** 30

let report: SuggestReport | undefined

addEventListener('message', ({ data }: MessageEvent<LogQuestion>) => {
  if ('log' in data) {
    const log = data.log === 'sample' ? new File([...shopLog()], 'sample.log') : data.log
    const answer = data.calls ? callsIn(log, data.calls) : countsIn(log)
    answer.then(postMessage, (error: Error) => postMessage({ problem: problemOf(error, log.name) }))
  } else {
    const found = report?.windows.find(({ windowMs }) => windowMs === data.windowMs)
    postMessage({ windowMs: data.windowMs, highest: found?.highest ?? [] })
  }
})

async function countsIn(log: File) {
  const reading = await readingOf(log, (part) => postMessage({ doing: 'Reading', progress: part / 2 }))
  const shelf = boundedShelf(MOST_BYTES, (times) =>
    postMessage({ doing: 'Deciding the calls of', progress: (2 + times) / 4 }),
  )
  report = await suggest(reading, { windows: WINDOWS, algorithm: 'slidingLog', untouched: 99.9, shelf })
  return countsOf(report)
}

/** The log is read once more, because it is not kept. */
async function callsIn(log: File, { caller, windowMs, limit }: CallsQuestion) {
  const reading = await readingOf(log, (progress) => postMessage({ doing: 'Reading once more', progress }))
  const spread = new Spread(reading)
  const times: number[] = []
  const take = (calls: ReturnType<Spread['end']>): void => {
    for (const call of calls) if (call.keys[0] === caller) times.push(call.at / 1000)
  }
  for await (const batch of reading.batches) take(spread.add(batch))
  take(spread.end())
  return { scenario: scenarioOf(times, windowMs, limit) }
}

/** The log, which is being read. `progress` is called with the part that was read. */
function readingOf(log: File, progress: (part: number) => void): ReturnType<typeof readLogs> {
  return readLogs([{ name: log.name, chunks: bytesOf(log, progress) }], { selectors: [{}] })
}

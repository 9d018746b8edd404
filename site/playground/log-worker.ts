import { readLogs, Spread, suggest, type SuggestReport } from '@sluice/cli'
import { formatDuration } from '@sluice/core/internal'
import { shopLog } from '../../packages/bench/src/logs/sample.js'
import { boundedShelf, scenarioOf } from './log-calls.js'

/*
 * The worker that reads a log, as the command line does. The log stays here: the page gets counts, and the names of the callers that
 * it shows.
 */

/** What the page asks: to read a log, to end the reading, or of a window. */
type LogQuestion = { readonly open: File | 'sample' } | { readonly cancel: true } | WindowQuestion

/** For the callers with the highest peaks in a window; or for the calls of one of them, under a limit. */
interface WindowQuestion {
  readonly windowMs: number
  readonly callsOf?: string
  readonly limit?: number
}

/** Limits as the command line tries them. */
const WINDOWS = [1000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000]
/** Of calls, 16 each, in the memory of a tab. */
const MOST_BYTES = 2 ** 30

let log: File
let reading: AbortController | undefined
let report: SuggestReport | undefined

addEventListener('message', ({ data }: MessageEvent<LogQuestion>) => {
  if ('cancel' in data) return reading?.abort()
  const answered = 'open' in data ? open(data.open) : answer(data)
  answered.catch(({ name, message }: Error) =>
    postMessage({ problem: name === 'Error' ? message : `${name}: ${message}` }),
  )
})

async function open(given: File | 'sample'): Promise<void> {
  report = undefined
  reading?.abort()
  const { signal } = (reading = new AbortController())
  log = given === 'sample' ? new File([...shopLog()], 'sample.log') : given
  const options = { selectors: [{}], signal }
  const found = await suggest(await readLogs([{ name: log.name, chunks: chunksOf(log, true) }], options), {
    windows: WINDOWS,
    algorithm: 'slidingLog',
    untouched: 99.9,
    shelf: boundedShelf(MOST_BYTES, log.name, (times) => postMessage({ progress: 1, decided: times / 2 })),
    signal,
  })
  if (reading.signal !== signal) return // another log was opened
  report = found
  const skipped = Object.entries(found.basis.skipped).map(([reason, { count }]) => [reason, count])
  const windows = found.windows.map(({ windowMs, without, peaks, recommended }) => {
    const shown = { windowMs, window: formatDuration(windowMs), without, peaks }
    return { ...shown, recommended: recommended?.policy.limit }
  })
  postMessage({ basis: { ...found.basis, skipped, formats: Object.values(found.basis.formats) }, windows })
}

/** The callers with the highest peaks in a window; or the calls around the peak of one of them, as a scenario with this limit. */
async function answer({ windowMs, callsOf, limit = 1 }: WindowQuestion): Promise<void> {
  const found = report?.windows.find((each) => each.windowMs === windowMs)
  if (callsOf === undefined) return postMessage({ windowMs, highest: found?.highest ?? [] })
  postMessage({ scenario: scenarioOf(await timesOf(callsOf), windowMs, limit) })
}

/** The instants of one caller's calls in milliseconds. The log is read once more, as it is not kept. */
async function timesOf(key: string): Promise<number[]> {
  const times: number[] = []
  const found = await readLogs([{ name: log.name, chunks: chunksOf(log, false) }], { selectors: [{}] })
  const spread = new Spread(found)
  const take = (calls: ReturnType<Spread['end']>): void => {
    for (const call of calls) if (call.keys[0] === key) times.push(call.at / 1000)
  }
  for await (const batch of found.batches) take(spread.add(batch))
  take(spread.end())
  return times
}

/** The bytes of a file, unpacked; while it is read the page is told how much of it was. */
async function* chunksOf(file: File, tells: boolean): AsyncGenerator<Uint8Array> {
  let [read, toldAt] = [0, -Infinity]
  const counted = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      read += chunk.length
      controller.enqueue(chunk)
      if (!tells || performance.now() - toldAt < 100) return
      toldAt = performance.now()
      postMessage({ progress: read / file.size })
    },
  })
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer())
  const isPacked = head[0] === 0x1f && head[1] === 0x8b
  const bytes = file.stream().pipeThrough(counted)
  const reader = (isPacked ? bytes.pipeThrough(new DecompressionStream('gzip')) : bytes).getReader()
  for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
}

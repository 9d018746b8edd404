import { scenarioAt } from './address.js'
import { columnsHtml } from './draw.js'
import { answersAt, type Pause, run, shownTime } from './run.js'
import { readScenario } from './scenario.js'

/*
 * The playground's worker. Each question ends what ran for the one before.
 */

/** A scenario as a text. With a call of a column: what is its client answered? */
export interface Question {
  readonly id: number
  readonly text: string
  readonly column?: number
  readonly call?: number
}

const SLICE_MS = 12
let latest: Question

addEventListener('message', ({ data }: MessageEvent<Question>) => void answer((latest = data)))

async function answer(question: Question): Promise<void> {
  const { id, text, column, call } = question
  const { scenario } = readScenario(scenarioAt(text).scenario)
  const pause = slicing(() => question === latest)
  if (column !== undefined && call !== undefined) {
    const answers = await answersAt(scenario, column, call, pause)
    if (answers) postMessage({ id, answers })
    return
  }
  const columns = await run(scenario, pause)
  if (!columns) return
  const span = shownTime(scenario)
  const pictures = columnsHtml(columns, span)
  // Handed over, as 100,000 calls take long to copy.
  const rows = columns.flatMap((each) => Object.values(each).filter((row) => ArrayBuffer.isView(row)))
  const transfer = rows.map(({ buffer }) => buffer as ArrayBuffer)
  postMessage({ id, text, columns, pictures, span }, { transfer })
}

/** Lets messages come in after each slice of time, and ends what is no longer wanted. */
function slicing(isWanted: () => boolean): Pause {
  let sliceEnd = performance.now() + SLICE_MS
  return () => {
    if (performance.now() < sliceEnd) return undefined
    sliceEnd = performance.now() + SLICE_MS
    return nextTask().then(isWanted)
  }
}

/** The next task; timers would wait for 4 ms. */
function nextTask(): Promise<unknown> {
  const { port1, port2 } = new MessageChannel()
  return new Promise((resolve) => {
    port1.onmessage = resolve
    port2.postMessage(undefined)
  }).finally(() => port1.close())
}

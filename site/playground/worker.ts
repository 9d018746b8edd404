import { scenarioAt } from './address.js'
import { columnsHtml } from './column-html.js'
import { responseOf } from './headers.js'
import { decisionAt, run, shownTime } from './run.js'
import { readScenario } from './scenario.js'

/*
 * The playground's worker. The latest question ends what ran for the one before.
 */

/** The text of a scenario, and the call of a column whose response is asked for. */
export interface Question {
  readonly id: number
  readonly text: string
  readonly pointed?: { readonly column: number; readonly call: number }
}

const SLICE_MS = 12
let latest = 0

addEventListener('message', ({ data }: MessageEvent<Question>) => {
  if (!data.pointed) latest = data.id
  void answer(data)
})

async function answer({ id, text, pointed }: Question): Promise<void> {
  const { scenario, problems } = readScenario(scenarioAt(text).scenario)
  if (Object.keys(problems).length > 0) return postMessage({ id, problems })
  if (pointed) {
    const found = await decisionAt(scenario, pointed.column, pointed.call)
    return postMessage({ id, response: found && responseOf(found.decision, found.at) })
  }
  const start = performance.now()
  let sliceEnd = start + SLICE_MS
  const columns = await run(scenario, () => {
    if (performance.now() < sliceEnd) return undefined
    sliceEnd = performance.now() + SLICE_MS
    return nextTask().then(() => id === latest)
  })
  if (!columns) return
  const span = shownTime(scenario)
  const pictures = columnsHtml(columns, span)
  // Handed over, as 100,000 calls take long to copy.
  const rows = columns.flatMap((column) => Object.values(column).filter((row) => ArrayBuffer.isView(row)))
  postMessage(
    { id, columns, pictures, span, ms: performance.now() - start },
    { transfer: rows.map(({ buffer }) => buffer as ArrayBuffer) },
  )
}

/** Lets messages come in; timers would wait for 4 ms. */
function nextTask(): Promise<unknown> {
  const { port1, port2 } = new MessageChannel()
  return new Promise((resolve) => {
    port1.onmessage = resolve
    port2.postMessage(undefined)
  }).finally(() => port1.close())
}

import { scenarioAt } from './address.js'
import { columnsHtml } from './column-html.js'
import { responseOf } from './headers.js'
import { decisionAt, run, shownTime } from './run.js'
import { readScenario, type Scenario } from './scenario.js'

/*
 * The playground's worker. The latest question ends what ran for the one before.
 */

export type Question =
  | { readonly id: number; readonly kind: 'run'; readonly scenario: Scenario }
  | { readonly id: number; readonly kind: 'run-address'; readonly fragment: string }
  | {
      readonly id: number
      readonly kind: 'response'
      readonly scenario: Scenario
      readonly column: number
      readonly call: number
    }

const SLICE_MS = 12
let latest = 0

addEventListener('message', ({ data }: MessageEvent<Question>) => {
  if (data.kind !== 'response') latest = data.id
  void answer(data)
})

async function answer(question: Question): Promise<void> {
  const { id } = question
  const typed = question.kind === 'run-address' ? scenarioAt(question.fragment).scenario : question.scenario
  const { scenario, problems } = readScenario(typed)
  if (Object.keys(problems).length > 0) return postMessage({ id, problems })
  if (question.kind === 'response') {
    const found = await decisionAt(scenario, question.column, question.call)
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
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.addEventListener('message', () => {
      port1.close()
      resolve()
    })
    port1.start()
    port2.postMessage(undefined)
  })
}

import { scenarioAt } from './address.js'
import { columnsHtml } from './draw.js'
import { answersOf } from './headers.js'
import { type DecidedColumn, run, shownTime } from './run.js'
import { readScenario } from './scenario.js'

/*
 * The playground's worker. The latest text ends what ran for the one before.
 */

/** The text of a scenario, or a call of the one before, whose answer to its client is asked for. */
export type Question =
  { readonly id: number; readonly text: string } | { readonly column: number; readonly call: number }

const SLICE_MS = 12
let latest = 0
let decided: readonly DecidedColumn[] = []

addEventListener('message', ({ data }: MessageEvent<Question>) => {
  if ('text' in data) return void decide(data.id, data.text)
  const { decisions, at } = decided[data.column] ?? {}
  const decision = decisions?.[data.call]
  if (decision) postMessage({ answers: answersOf(decision, at![data.call]! + decision.waitMs) })
})

async function decide(id: number, text: string): Promise<void> {
  latest = id
  const { scenario } = readScenario(scenarioAt(text).scenario)
  let sliceEnd = performance.now() + SLICE_MS
  const results = await run(scenario, () => {
    if (performance.now() < sliceEnd) return undefined
    sliceEnd = performance.now() + SLICE_MS
    return nextTask().then(() => id === latest)
  })
  if (!results) return
  decided = results
  const span = shownTime(scenario)
  const columns = decided.map((column) => ({ ...column, decisions: undefined }))
  postMessage({ id, columns, pictures: columnsHtml(columns, span), span })
}

/** Lets messages come in; timers would wait for 4 ms. */
function nextTask(): Promise<unknown> {
  const { port1, port2 } = new MessageChannel()
  return new Promise((resolve) => {
    port1.onmessage = resolve
    port2.postMessage(undefined)
  }).finally(() => port1.close())
}

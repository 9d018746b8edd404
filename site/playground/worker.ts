import { scenarioAt } from './address.js'
import { columnsHtml } from './draw.js'
import { answersAt, type Pause, run, shownTime } from './run.js'
import { type ReadScenario, readScenario } from './scenario.js'

/*
 * The playground's worker. The latest text ends what ran for the one before, and the latest call that is pointed at likewise.
 */

interface TextQuestion {
  readonly id: number
  readonly text: string
}

/** A call of the scenario whose question had the number `id`: what is its client answered? */
interface CallQuestion {
  readonly id: number
  readonly column: number
  readonly call: number
}

export type Question = TextQuestion | CallQuestion

const SLICE_MS = 12
let latestText: Question
let latestCall: Question
let shown: { readonly id: number; readonly scenario: ReadScenario } | undefined

addEventListener('message', ({ data }: MessageEvent<Question>) => {
  if ('text' in data) void decide((latestText = data))
  else if (data.id === shown?.id) void answer((latestCall = data), shown.scenario)
})

async function decide(question: TextQuestion): Promise<void> {
  const { id, text } = question
  const { scenario } = readScenario(scenarioAt(text).scenario)
  const isWanted = slicing(() => question === latestText)
  const columns = await run(scenario, isWanted)
  if (!columns) return
  shown = { id, scenario }
  const span = shownTime(scenario)
  const pictures = columnsHtml(columns, span)
  // Handed over, as 100,000 calls take long to copy.
  const rows = columns.flatMap((column) => Object.values(column).filter((row) => ArrayBuffer.isView(row)))
  const transfer = rows.map(({ buffer }) => buffer as ArrayBuffer)
  postMessage({ id, columns, pictures, span }, { transfer })
}

async function answer(question: CallQuestion, scenario: ReadScenario): Promise<void> {
  const { column, call } = question
  const isWanted = slicing(() => question === latestCall)
  const answers = await answersAt(scenario, column, call, isWanted)
  if (answers) postMessage({ ...question, answers })
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

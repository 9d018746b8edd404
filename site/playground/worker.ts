import { scenarioAt } from './address.js'
import { columnsHtml } from './draw.js'
import { answersAt, run, shownTime } from './run.js'
import { readScenario } from './scenario.js'

/*
 * The playground's worker. A question that came too late is ended with it.
 */

/** A scenario as a text. With a call of a column: what is its client answered? */
interface Question {
  readonly text: string
  readonly column?: number
  readonly call?: number
}

addEventListener('message', ({ data }: MessageEvent<Question>) => void answer(data))

async function answer({ text, column, call }: Question): Promise<void> {
  const { scenario } = readScenario(scenarioAt(text).scenario)
  if (column !== undefined && call !== undefined)
    return postMessage({ answers: await answersAt(scenario, column, call) })
  const columns = await run(scenario)
  const span = shownTime(scenario)
  const pictures = columnsHtml(columns, span)
  // Handed over, as 100,000 calls take long to copy.
  const rows = columns.flatMap((each) => Object.values(each).filter((row) => ArrayBuffer.isView(row)))
  const transfer = rows.map(({ buffer }) => buffer as ArrayBuffer)
  postMessage({ text, columns, pictures, span }, { transfer })
}

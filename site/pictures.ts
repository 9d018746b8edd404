import { scenarioAt } from './playground/address.js'
import { policyCode } from './playground/code.js'
import { columnsHtml, escaped, totalsText } from './playground/draw.js'
import { PRESETS } from './playground/presets.js'
import { run, shownTime } from './playground/run.js'
import { type Column, readScenario } from './playground/scenario.js'

/** Wide enough for a column of text, and for a phone. */
const BINS = 200

/** The pictures of the playground's presets, by id, as HTML without scripts. */
export async function drawPictures(base: string): Promise<ReadonlyMap<string, string>> {
  const pictures = PRESETS.map(async ({ id, title, fragment }): Promise<[string, string]> => {
    const { scenario: typed } = scenarioAt(fragment)
    const { scenario, problems } = readScenario(typed)
    const results = Object.keys(problems).length === 0 ? await run(scenario) : undefined
    if (!results) throw new Error(`the preset ${id} cannot be run: ${JSON.stringify(problems)}`)
    const span = shownTime(scenario)
    const drawn = columnsHtml(results, span, BINS)
    const columns = results.map(
      (result, i) =>
        `<div class="column"><p class="column-title"><code>${escaped(columnTitle(typed.columns[i]!))}</code> ${totalsText(result)}</p>${drawn[i]}</div>`,
    )
    const link = `${base}playground.html#${escaped(fragment)}`
    const caption = `<figcaption><a href="${link}">Open in the playground: ${escaped(title)}</a></figcaption>`
    return [id, `<figure class="picture" v-pre>${columns.join('')}${caption}</figure>\n`]
  })
  return new Map(await Promise.all(pictures))
}

function columnTitle({ policies, wait, leases }: Column): string {
  const more = [...(wait ? ['acquire'] : []), ...(leases ? ['leases'] : [])]
  return [policies.map(policyCode).join(' and '), ...more].join(', ')
}

/**
 * Puts pictures in the place of comments like `<!-- playground: boundary -->`.
 * @throws {Error} for a picture that does not exist.
 */
export function withPictures(markdown: string, pictures: ReadonlyMap<string, string>): string {
  return markdown.replace(/^<!-- playground: ([\w-]+) -->$/gm, (_, id: string) => {
    const picture = pictures.get(id)
    if (picture === undefined) throw new Error(`there is no picture '${id}' in site/playground/presets.ts`)
    return picture
  })
}

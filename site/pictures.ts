import { scenarioAt } from './playground/address.js'
import { policyCode } from './playground/code.js'
import { columnsHtml, escaped, totalsText } from './playground/draw.js'
import { PRESETS } from './playground/presets.js'
import { run, shownTime } from './playground/run.js'
import { type Column, readScenario } from './playground/scenario.js'

/** Wide enough for a column of text, and for a phone. */
const BINS = 200

/**
 * The limits of a scenario as they are written, what they decide, and their pictures without scripts.
 * @throws {Error} for a scenario that cannot be run.
 */
export async function decided(fragment: string) {
  const { scenario: typed } = scenarioAt(fragment)
  const { scenario, problems } = readScenario(typed)
  if (Object.keys(problems).length > 0)
    throw new Error(`${fragment} cannot be run: ${JSON.stringify(problems)}`)
  const results = await run(scenario)
  const drawn = columnsHtml(results, shownTime(scenario), BINS)
  return { titles: typed.columns.map(columnTitle), results, drawn }
}

/** The pictures of the playground's presets, by id, as HTML. */
export async function drawPictures(base: string): Promise<ReadonlyMap<string, string>> {
  const pictures = PRESETS.map(async ({ id, title, fragment }): Promise<[string, string]> => {
    const { titles, results, drawn } = await decided(fragment)
    const columns = results.map((result, i) => {
      const about = `<code>${escaped(titles[i]!)}</code> ${totalsText(result)}`
      return `<div class="column"><p class="column-title">${about}</p>${drawn[i]}</div>`
    })
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
 * Puts pictures, and what else is made, in the place of comments like `<!-- playground: boundary -->`.
 * @throws {Error} for a name that none has.
 */
export function withPictures(markdown: string, made: ReadonlyMap<string, string>): string {
  return markdown.replace(/^<!-- (?:playground|first): ([\w-]+) -->$/gm, (_, id: string) => {
    const html = made.get(id)
    if (html === undefined) throw new Error(`there is no picture '${id}' in site/playground/presets.ts`)
    return html
  })
}

import { readFileSync } from 'node:fs'
import { decided } from './pictures.js'
import { escaped } from './playground/draw.js'

/*
 * What moves and what is copied on the first page. Code and answer are those of the packages' own pages, which tests run; the picture
 * is drawn of decisions.
 */

const FRAMEWORKS = { Express: 'express', Fastify: 'fastify', Hono: 'hono', Koa: 'koa', Nest: 'nest' }
/** Twenty calls before the edge of a window, and twenty after it. */
const SCENARIO =
  '2&kind=edge&window=10s&burst=20&span=24s&limits=fixedWindow(limit:20,window:10s)&limits=slidingLog(limit:20,window:10s)'
/** A block with the answer to a denied request, in which a line of the first page finds its status and its wait. */
const ANSWER = /^```http\nHTTP\/1.1 (.*)$[^]*^(Retry-After: \d+)$[^]*/m

/** The blocks of the first page by the comments in whose place they stand: `<!-- first: code -->`. */
export async function firstPage(root: string): Promise<ReadonlyMap<string, string>> {
  const text = (file: string): string => readFileSync(`${root}/${file}`, 'utf8')
  const answer = blockOf(text('README.md'), 'http')
  return new Map([
    ['code', codeGroup(text)],
    ['told', answer.replace(ANSWER, 'Request 101 of a minute: `$1`, `$2`')],
    ['answer', answer],
    ['picture', await picture()],
  ])
}

/** A tab for each framework, as VitePress writes one: how it is installed, and a first route behind a limit, each to be copied by itself. */
function codeGroup(text: (file: string) => string): string {
  const [tabs, blocks] = [[] as string[], [] as string[]]
  for (const [title, name] of Object.entries(FRAMEWORKS)) {
    const page = text(`packages/${name}/README.md`)
    const [checked, active] = tabs.length === 0 ? [' checked', ' active'] : ['', '']
    const label = `<label for="tab-${name}" data-title="${title}">${title}</label>`
    tabs.push(`<input type="radio" name="tabs" id="tab-${name}"${checked}>${label}`)
    blocks.push(
      `<div class="vp-block${active}">\n\n${blockOf(page, 'sh')}\n\n${blockOf(page, 'ts')}\n\n</div>`,
    )
  }
  const all = blocks.join('\n')
  return `<div class="vp-code-group"><div class="tabs">${tabs.join('')}</div><div class="blocks">\n${all}\n</div></div>`
}

/**
 * The first block of code in a language.
 * @throws {Error} where there is none.
 */
function blockOf(markdown: string, language: string): string {
  const [block] = new RegExp(`^\`\`\`${language}\n[^]*?^\`\`\`$`, 'm').exec(markdown) ?? []
  if (block === undefined) throw new Error(`there is no block of ${language}`)
  return block
}

/** The same calls through two limits, side by side, as they come. */
async function picture(): Promise<string> {
  const { results, drawn } = await decided(SCENARIO)
  const [twice = 0, exact] = results.map(({ policies }) => policies[0]!.most)
  const panel = (title: string, about: string, said: string, i: number): string =>
    `<div class="column"><h3>${title}</h3><p>${about}</p><div class="moving">${drawn[i]}</div><p class="said">${said}</p></div>`
  const fixed = `<b class="over">${twice} got through within 10 seconds.</b> Each of the two windows saw only ${twice / 2}.`
  const log = `<b>${exact} got through.</b> ${results[1]!.totals.denied} were refused, and told when to come back.`
  const link = `<a href="playground.html#${escaped(SCENARIO)}">Try your own</a>`
  return [
    '<figure class="picture race" v-pre>',
    panel('Fixed window', 'Counts to 20, and begins again every 10 seconds.', fixed, 0),
    panel('Exact log', 'Looks back 10 seconds from each call.', log, 1),
    `<figcaption>The same calls, the same limit of 20. Bars above the line got through, bars below it were refused; the area is how many got through in the last 10 seconds. ${link}</figcaption></figure>\n`,
  ].join('')
}

// The reference: a page of every option and one of every header, made of what declares them, the recipes as pages, and the pages
// of every public name that `npm run check -- api` makes.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { writePages } from '../scripts/check/api/pages.js'
import { publicPackages } from '../scripts/workspace.js'
import { createLimiter, fixedWindow, memoryStore } from '@sluice/core'
import { responseOf } from './playground/headers.ts'

const OUT = 'site/generated'

/** Writes all of it, from the root of the repository. */
export async function writeReference() {
  rmSync(OUT, { recursive: true, force: true })
  mkdirSync(`${OUT}/recipes`, { recursive: true })
  const problems = await writePages(publicPackages(), 'docs/api', (project) => {
    writeFileSync(`${OUT}/options.md`, optionsPage(project))
  })
  if (problems > 0) throw new Error(`the reference has ${problems} problems`)
  writeFileSync(`${OUT}/headers.md`, await headersPage())
  for (const file of readdirSync('docs/recipes').filter((name) => name.endsWith('.ts'))) {
    writeFileSync(`${OUT}/recipes/${file.replace('.ts', '.md')}`, recipePage(file))
  }
}

/**
 * One heading an option, with each interface that has it.
 * @param {any} project
 */
function optionsPage(project) {
  /** By name, and by what is said of it. @type {Map<string, Map<string, { type: string, who: string[] }>>} */
  const options = new Map()
  for (const entry of project.children) {
    for (const each of entry.children ?? []) {
      if (!each.name.endsWith('Options') || each.kind !== 256) continue
      for (const property of each.children ?? []) {
        const takers = options.get(property.name) ?? new Map()
        const { type, text } = described(property)
        const taker = takers.get(text) ?? { type, who: [] }
        taker.who.push(`${entry.name}: ${each.name}`)
        takers.set(text, taker)
        options.set(property.name, takers)
      }
    }
  }
  const sections = [...options]
    .sort(([one], [other]) => one.localeCompare(other))
    .map(([name, takers]) => {
      const texts = [...takers].map(([text, { type, who }]) => {
        const list = [...new Set(who)].map((each) => `\`${each}\``).join(', ')
        return [`\`${type}\``, text, `*Of ${list}*`].filter(Boolean).join('\n\n')
      })
      return `## ${name}\n\n${texts.join('\n\n')}`
    })
  return `# Options\n\nEvery option of every package, as the sources declare it.\n\n${sections.join('\n\n')}\n`
}

/** @param {any} property */
function described(property) {
  const comment = property.comment ?? property.type?.declaration?.signatures?.[0]?.comment
  /** @param {{ text: string }[]} [list] */
  const parts = (list = []) =>
    list
      .map(({ text }) => text)
      .join('')
      .trim()
  const summary = parts(comment?.summary)
  /** @type {any[]} */
  const tags = comment?.blockTags ?? []
  const standard = tags.find(({ tag }) => tag === '@default')
  const otherwise = parts(standard?.content)
    .replaceAll(/```\w*\n?/g, '')
    .trim()
  const type = String(property.type ?? 'function').replaceAll('`', "'")
  const text = [
    escapeMarkup(summary),
    otherwise && `Default: ${otherwise.includes('`') ? escapeMarkup(otherwise) : `\`${otherwise}\``}.`,
  ]
    .filter(Boolean)
    .join(' ')
  return { type, text }
}

/**
 * Text outside of code, in which `<` begins no element.
 * @param {string} text
 */
function escapeMarkup(text) {
  return text
    .split(/(`[^`]*`)/)
    .map((part, i) => (i % 2 ? part : part.replaceAll('<', '&lt;').replaceAll('{{', '&#123;{')))
    .join('')
}

/** Each header with the lines that the adapters' guard writes for a call that passes and for one that is denied. */
async function headersPage() {
  const store = memoryStore({ clock: () => 1_767_225_600_000_000 })
  const limiter = createLimiter({ name: 'api', policies: [fixedWindow({ limit: 1, window: '1m' })], store })
  const answers = [await limiter.consume('a'), await limiter.consume('a')].map((decision) =>
    responseOf(decision, 0),
  )
  await Promise.all([limiter.close(), store.close()])
  /** @type {Map<string, string[]>} */
  const headers = new Map()
  for (const [i, { status, formats }] of answers.entries()) {
    for (const { format, headers: lines } of formats) {
      for (const line of lines) {
        const name = line.slice(0, line.indexOf(':'))
        headers.set(name, [
          ...(headers.get(name) ?? []),
          `| ${format} | ${i === 0 ? 'passes' : status} | \`${line}\` |`,
        ])
      }
    }
  }
  const sections = [...headers].map(
    ([name, rows]) => `## ${name}\n\n| format | call | |\n|---|---|---|\n${[...new Set(rows)].join('\n')}`,
  )
  const about =
    'Every header that the adapters set, as they set it under one request a minute, for the first call and the second one.'
  return `# Headers\n\n${about} [HTTP](../../docs/http.md#headers-and-denials) says what they mean.\n\n${sections.join('\n\n')}\n`
}

/** @param {string} file */
function recipePage(file) {
  const code = readFileSync(`docs/recipes/${file}`, 'utf8')
  return `# Recipe: ${file.replace('.ts', '').replaceAll('-', ' ')}\n\nTo be copied; the tests of the repository run it. [All recipes](../../../docs/recipes/README.md)\n\n\`\`\`ts\n${code}\`\`\`\n`
}

// The reference: a page of every option and one of every header, made of what declares them, the recipes as pages, and the pages
// of every public name that `npm run check -- api` makes.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { writePages } from '../scripts/check/api/pages.js'
import { publicPackages } from '../scripts/workspace.js'
import { scenarioAt } from './playground/address.ts'
import { answersAt } from './playground/run.ts'
import { readScenario } from './playground/scenario.ts'

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
  /** @type {{ name: string, text: string, owner: string }[]} */
  const options = project.children.flatMap((/** @type {any} */ entry) =>
    (entry.children ?? [])
      .filter((/** @type {any} */ { name, kind }) => name.endsWith('Options') && kind === 256)
      .flatMap((/** @type {any} */ { name: owner, children = [] }) =>
        children.map((/** @type {any} */ property) => ({
          name: property.name,
          text: described(property),
          owner: `\`${entry.name}: ${owner}\``,
        })),
      ),
  )
  const sections = grouped(options, 'name').map(([name, same]) => {
    const texts = grouped(same, 'text').map(
      ([text, takers]) => `${text}\n\n*Of ${[...new Set(takers.map(({ owner }) => owner))].join(', ')}*`,
    )
    return `## ${name}\n\n${texts.join('\n\n')}`
  })
  const sorted = sections.sort((one, other) => one.localeCompare(other))
  return `# Options\n\nEvery option of every package, as the sources declare it.\n\n${sorted.join('\n\n')}\n`
}

/**
 * The type of an option, what its docstring says, and its default.
 * @param {any} property
 */
function described(property) {
  const comment = property.comment ?? property.type?.declaration?.signatures?.[0]?.comment
  const textOf = (/** @type {{ text: string }[]} */ parts = []) =>
    escapeMarkup(
      parts
        .map(({ text }) => text.replaceAll(/```\w*\n([^]*?)\n```/g, '`$1`'))
        .join('')
        .trim(),
    )
  const otherwise = textOf(
    comment?.blockTags?.find((/** @type {any} */ { tag }) => tag === '@default')?.content,
  )
  const text = [textOf(comment?.summary), otherwise && `Default: ${otherwise}.`].filter(Boolean).join(' ')
  return [`\`${String(property.type ?? 'function').replaceAll('`', "'")}\``, text]
    .filter(Boolean)
    .join('\n\n')
}

/**
 * The entries by what they have in common.
 * @template {Record<string, string>} Entry
 * @param {readonly Entry[]} entries
 * @param {string} name
 * @returns {[string, Entry[]][]}
 */
function grouped(entries, name) {
  const groups = new Map()
  for (const entry of entries) groups.set(entry[name], [...(groups.get(entry[name]) ?? []), entry])
  return [...groups]
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
  const { scenario } = readScenario(
    scenarioAt('2&rate=1&span=2s&limits=fixedWindow(limit:1,window:1m)').scenario,
  )
  const answers = await Promise.all([0, 1].map((call) => answersAt(scenario, 0, call)))
  const lines = answers
    .flatMap((each) => each ?? [])
    .flatMap(({ status, format, headers }) =>
      headers.map((line) => ({
        name: line.slice(0, line.indexOf(':')),
        row: `| ${format} | ${status === 200 ? 'passes' : status} | \`${line}\` |`,
      })),
    )
  const sections = grouped(lines, 'name').map(([name, same]) => {
    const rows = new Set(same.map(({ row }) => row))
    return `## ${name}\n\n| format | call | |\n|---|---|---|\n${[...rows].join('\n')}`
  })
  const about =
    'Every header that the adapters set, as they set it under one request a minute, for the first call and the second one.'
  return `# Headers\n\n${about} [HTTP](../../docs/http.md#headers-and-denials) says what they mean.\n\n${sections.join('\n\n')}\n`
}

/** @param {string} file */
function recipePage(file) {
  const code = readFileSync(`docs/recipes/${file}`, 'utf8')
  return `# Recipe: ${file.replace('.ts', '').replaceAll('-', ' ')}\n\nTo be copied; the tests of the repository run it. [All recipes](../../../docs/recipes/README.md)\n\n\`\`\`ts\n${code}\`\`\`\n`
}

// The reference: a page of every header, made by what writes them, the recipes as pages, and the pages of every public name that
// `npm run check -- api` makes; and a page of the playground for each preset.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { writePages } from '../scripts/check/api/pages.js'
import { publicPackages } from '../scripts/workspace.js'
import { scenarioAt } from './playground/address.ts'
import { PRESETS } from './playground/presets.ts'
import { answersAt } from './playground/run.ts'
import { readScenario } from './playground/scenario.ts'
import { presetPage } from './preset-page.ts'

const OUT = 'site/generated'

/** Writes all of it, from the root of the repository. */
export async function writeReference() {
  rmSync(OUT, { recursive: true, force: true })
  mkdirSync(`${OUT}/recipes`, { recursive: true })
  const problems = await writePages(publicPackages(), 'docs/api')
  if (problems > 0) throw new Error(`the reference has ${problems} problems`)
  writeFileSync(`${OUT}/headers.md`, await headersPage())
  for (const file of readdirSync('docs/recipes').filter((name) => name.endsWith('.ts'))) {
    writeFileSync(`${OUT}/recipes/${file.replace('.ts', '.md')}`, recipePage(file))
  }
  mkdirSync(`${OUT}/playground`)
  const { homepage } = JSON.parse(readFileSync('package.json', 'utf8'))
  for (const preset of PRESETS)
    writeFileSync(`${OUT}/playground/${preset.id}.md`, await presetPage(preset, homepage))
}

/** Each header with the lines that the adapters' guard writes for a call that passes and for one that is denied. */
async function headersPage() {
  const about =
    'Every header that the adapters set, as they set it under one request a minute, for the first call and the second one.'
  let page = `# Headers\n\n${about} [HTTP](../../docs/http.md#headers-and-denials) says what they mean.\n`
  const minute = '2&rate=1&span=2s&limits=fixedWindow(limit:1,window:1m)'
  const { scenario } = readScenario(scenarioAt(minute).scenario)
  const answers = await Promise.all([0, 1].map((call) => answersAt(scenario, 0, call)))
  const lines = answers.flat().flatMap((each) => each.headers.map((line) => ({ ...each, line })))
  for (const name of new Set(lines.map(({ line }) => line.split(':')[0]))) {
    const rows = lines
      .filter(({ line }) => line.startsWith(`${name}:`))
      .map(
        ({ format, status, line }) => `| ${format} | ${status === 200 ? 'passes' : status} | \`${line}\` |`,
      )
    page += `\n## ${name}\n\n| format | call | |\n|---|---|---|\n${rows.join('\n')}\n`
  }
  return page
}

/** @param {string} file */
function recipePage(file) {
  const code = readFileSync(`docs/recipes/${file}`, 'utf8')
  return `# Recipe: ${file.replace('.ts', '').replaceAll('-', ' ')}\n\nTo be copied; the tests of the repository run it. [All recipes](../../../docs/recipes/README.md)\n\n\`\`\`ts\n${code}\`\`\`\n`
}

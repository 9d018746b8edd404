// Runs the command that each page shows over a log that is always the same, and compares its output with the page's, the table of logs
// with the samples, and the schema of policy files with the one that is published (--write writes all). Needs the build.
import { policySchema } from '@sluice/policies'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { format } from 'prettier'
import { shopLog } from '../../packages/bench/src/logs/sample.js'
import { temporaryFolder } from '../temporary-folder.js'
import { writeOrCompare } from './written.js'

const PAGES = ['docs/cli.md', 'packages/cli/README.md']
const BETWEEN =
  /(?<=<!-- suggest -->\n\n```sh\nnpx @sluice\/cli (.*)\n```\n\n```text\n)[^]*?(?=```\n\n<!-- end -->)/

const TABLE = /(?<=<!-- samples -->)[^]*(?=<!-- end of samples -->)/

const folder = temporaryFolder('cli')
writeFileSync(join(folder, 'access.log'), [...shopLog()].join(''))
const schema = await format(JSON.stringify(policySchema(), null, 2), { parser: 'json', printWidth: 110 })
writeOrCompare('cli', [...PAGES.map(shown), ['packages/policies/schema.json', schema]])

/** A page with what its command prints. @param {string} path @returns {[path: string, text: string]} */
function shown(path) {
  const page = readFileSync(path, 'utf8')
  const [, command = ''] = BETWEEN.exec(page) ?? []
  if (command === '') throw new Error(`${path} shows no command`)
  const text = page.replace(BETWEEN, () => outputOf(command.split(' ')))
  return [path, text.replace(TABLE, () => `\n\n${tableOfSamples()}\n\n`)]
}

/** @param {string[]} args */
function outputOf(args) {
  const program = resolve('packages/cli/bin/sluice.js')
  const env = { ...process.env, COLUMNS: '80' }
  const { stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
    cwd: folder,
    encoding: 'utf8',
    env,
  })
  process.stderr.write(stderr)
  return stdout
}

/** The logs that a test reads, each with what has written it and how it is read. */
function tableOfSamples() {
  /** @type {Record<string, { by: string, about?: string, options?: string, holds?: { format: string, denied: number | null, unread: number }, refused?: string }>} */
  const samples = JSON.parse(readFileSync('packages/cli/test/samples/samples.json', 'utf8'))
  const rows = Object.entries(samples).map(([name, { by, about, options, holds, refused }]) => {
    const beside = [
      ...(options === undefined ? [] : [`with \`${options}\``]),
      ...(holds?.denied === null ? ['without denials'] : []),
      ...(holds && holds.unread > 0 ? ['half of it, so the exit code is 3'] : []),
    ]
    const read = holds ? [holds.format, ...beside].join(', ') : `refused: "${refused}"`
    return `| ${about ?? name} | ${by === 'read' ? 'by hand' : by} | ${read} |`
  })
  return ['| log | written by | read as |', '|---|---|---|', ...rows].join('\n')
}

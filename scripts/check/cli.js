// Runs the command that each page shows over a log that is always the same, and compares its output with the page's, and the schema of
// policy files with the one that is published (--write writes both). Needs the build.
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

const folder = temporaryFolder('cli')
writeFileSync(join(folder, 'access.log'), [...shopLog()].join(''))
const schema = await format(JSON.stringify(policySchema(), null, 2), { parser: 'json', printWidth: 110 })
writeOrCompare('cli', [...PAGES.map(shown), ['packages/policies/schema.json', schema]])

/** A page with what its command prints. @param {string} path @returns {[path: string, text: string]} */
function shown(path) {
  const page = readFileSync(path, 'utf8')
  const [, command = ''] = BETWEEN.exec(page) ?? []
  if (command === '') throw new Error(`${path} shows no command`)
  return [path, page.replace(BETWEEN, () => outputOf(command.split(' ')))]
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

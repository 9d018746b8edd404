// Runs the command that each page shows over a log that is always the same, and compares its output with the page's, and the schema of
// policy files with the one that is published (--write writes both). Needs the build.
import { policySchema } from '@sluice/policies'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { shopLog } from '../../packages/bench/src/logs/sample.js'

const PAGES = ['docs/cli.md', 'packages/cli/README.md']
const BETWEEN =
  /(?<=<!-- suggest -->\n\n```sh\nnpx @sluice\/cli (.*)\n```\n\n```text\n)[^]*?(?=```\n\n<!-- end -->)/
const SCHEMA = 'packages/policies/schema.json'

const isWriting = process.argv.includes('--write')
const schema = JSON.parse(JSON.stringify(policySchema()))
const wrong = PAGES.filter((path) => !isRight(path))
if (JSON.stringify(JSON.parse(readFileSync(SCHEMA, 'utf8'))) !== JSON.stringify(schema)) wrong.push(SCHEMA)
if (isWriting) writeFileSync(SCHEMA, `${JSON.stringify(schema, null, 2)}\n`)
else if (wrong.length > 0) {
  console.error(
    `${wrong.join(', ')}: not what the command prints: npm run check -- cli --write, then npm run format`,
  )
  process.exitCode = 1
}

/**
 * Whether a page shows what its command prints; it does once it is written.
 * @param {string} path
 */
function isRight(path) {
  const page = readFileSync(path, 'utf8')
  const [shown, command = ''] = BETWEEN.exec(page) ?? []
  const output = outputOf(command.split(' '))
  const changed = page.replace(BETWEEN, () => output)
  if (isWriting) writeFileSync(path, changed)
  return shown === output
}

/** @param {string[]} args */
function outputOf(args) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-readme-'))
  try {
    writeFileSync(join(folder, 'access.log'), [...shopLog()].join(''))
    const program = join(process.cwd(), 'packages/cli/bin/sluice.js')
    const env = { ...process.env, COLUMNS: '80' }
    const { stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
      cwd: folder,
      encoding: 'utf8',
      env,
    })
    process.stderr.write(stderr)
    return stdout
  } finally {
    rmSync(folder, { recursive: true })
  }
}

// Runs the command that docs/cli.md shows over a log that is always the same, and compares its output with the page's, and the schema of
// policy files with the one that is published (--write writes both). Needs the build.
import { policySchema } from '@sluice/policies'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { shopLog } from '../../packages/bench/src/logs/sample.js'

const PAGE = 'docs/cli.md'
const BETWEEN =
  /(?<=<!-- suggest -->\n\n```sh\nnpx @sluice\/cli (.*)\n```\n\n```text\n)[^]*?(?=```\n\n<!-- end -->)/
const SCHEMA = 'packages/policies/schema.json'

const page = readFileSync(PAGE, 'utf8')
const [shown, command = ''] = BETWEEN.exec(page) ?? []
const output = outputOf(command.split(' '))
const schema = JSON.parse(JSON.stringify(policySchema()))
const isRight =
  shown === output && JSON.stringify(JSON.parse(readFileSync(SCHEMA, 'utf8'))) === JSON.stringify(schema)
if (process.argv.includes('--write')) {
  writeFileSync(
    PAGE,
    page.replace(BETWEEN, () => output),
  )
  writeFileSync(SCHEMA, `${JSON.stringify(schema, null, 2)}\n`)
} else if (!isRight) {
  console.error(
    `${PAGE} or ${SCHEMA} is not what the command prints: npm run check -- cli --write, then npm run format`,
  )
  process.exitCode = 1
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

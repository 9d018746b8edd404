// 3 am: a caller of a fleet of four processes is refused among a flood of others. From the id in his answer by `why` and `exempt`, with the
// command that `why` prints, to the request of his that passes in each process: npm run verify -- three-am. Exit 1 above ten seconds.
import { startRedis } from '@sluice/harness/redis'
import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { temporaryFolder } from '../../../scripts/temporary-folder.js'

const PROCESSES = 4
/** Other callers who are refused: more than four processes post. */
const OTHERS = 1000
const MOST_MS = 10_000

const redis = await startRedis()
const folder = temporaryFolder('three-am')
const file = join(folder, 'policies.json')
const policies = [{ algorithm: 'gcra', limit: 1, window: '1h' }]
writeFileSync(file, JSON.stringify({ limiters: { api: { policies, by: 'header:x-api-key' } } }))
const url = `redis://${redis.host}:${redis.port}`
const secret = 'b7e151628aed2a6abf7158809cf4f3c7'
const env = { ...process.env, SLUICE_STORE: url, SLUICE_SECRET: secret, NO_COLOR: '1' }
const service = fileURLToPath(new URL('service.js', import.meta.url))
const fleet = Array.from({ length: PROCESSES }, () => fork(service, [file, url], { env, execArgv: [] }))
const ports = await Promise.all(
  fleet.map(async (child) => /** @type {number} */ ((await once(child, 'message'))[0])),
)

/** @param {string} key @param {number} [process] */
const ask = (key, process = 0) =>
  fetch(`http://127.0.0.1:${ports[process % PROCESSES]}/`, { headers: { 'x-api-key': key } })

/** Runs a command of the page in the folder of the service, and returns what it prints. @param {string} command */
async function run(command) {
  console.log(`$ ${command}`)
  const [, ...words] = command.replace(/^npx /, '').match(/'[^']*'|\S+/g) ?? []
  const args = [resolve('packages/cli/bin/sluice.js'), ...words.map((word) => word.replaceAll("'", ''))]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd: folder, env })
  process.stdout.write(stdout + stderr)
  return stdout
}

let ms = Infinity
try {
  await ask('key-of-ann')
  const refusal = await ask('key-of-ann', 1)
  const { instance } = /** @type {{ instance: string }} */ (await refusal.json())
  for (let i = 0; i < OTHERS; i += 50)
    await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        for (const process of [n, n + 1]) await (await ask(`other-${i + n}`, process)).text()
      }),
    )
  console.log(`HTTP ${refusal.status}, "instance":"${instance}", among ${OTHERS} others who are refused`)
  const since = performance.now()
  const printed = await run(`npx sluice why --id ${instance} --policies policies.json`)
  const exempt = /^ {2}(sluice exempt .*) --reason \.\.\.$/m.exec(printed)?.[1]
  if (!exempt) throw new Error('why lists no exemption')
  await run(`${exempt} --reason 'ticket 42' --yes`)
  for (let i = 0; i < PROCESSES; i++) while ((await ask('key-of-ann', i)).status !== 200);
  ms = performance.now() - since
  const seconds = (ms / 1000).toFixed(1)
  console.log(`${seconds} s from the id to requests that pass in each of ${PROCESSES} processes`)
} finally {
  const ended = fleet.map((child) => once(child, 'exit'))
  for (const child of fleet) child.disconnect()
  await Promise.all(ended)
  await redis.stop()
}
process.exitCode = ms < MOST_MS ? 0 : 1

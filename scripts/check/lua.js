// Checks the Lua scripts as Redis gets them: composed for every shape, and for several policies together. The modules
// alone would not do, as they use each other's names. Needs the build and luacheck (scripts/programs.js).
import { everyPolicy } from '@sluice/testing/internal'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { composeScript } from '../../packages/core/dist/cjs/stores/redis/script/compose.js'
import { modules } from '../../packages/core/dist/cjs/stores/redis/script/modules.gen.js'
import { temporaryFolder } from '../temporary-folder.js'

const policies = everyPolicy({ limit: 10, window: 60_000 })
const folder = temporaryFolder('lua')
for (const [name, policy] of policies) {
  write(name, [policy])
  write(`${name}-penalty`, [policy], { after: 3, block: 1e9, factor: 2, maxBlock: 1e12, forgetAfter: 1e12 })
}
const all = policies.map(([, policy]) => policy)
write('all', all)
writeFileSync(join(folder, 'semaphore.lua'), modules.semaphore ?? '')
const options = ['--std', 'lua51', '--read-globals', 'redis', 'struct', 'KEYS', 'ARGV', 'table.unpack']
// What a list of shapes does not need is left out of no module, so that much stays unused in each script.
const unused = ['--no-unused', '--no-max-line-length', '--ignore', '511']
const args = ['--no-color', folder, ...options, ...unused]
process.exitCode = spawnSync('luacheck', args, { stdio: 'inherit' }).status === 0 ? 0 : 1

/**
 * @param {string} name
 * @param {readonly import('@sluice/core').Policy[]} policies
 * @param {import('@sluice/core/store').Penalty} [penalty]
 */
function write(name, policies, penalty) {
  writeFileSync(join(folder, `${name.replaceAll('/', ' ')}.lua`), composeScript(policies, penalty))
}

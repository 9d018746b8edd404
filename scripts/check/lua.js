// Checks the Lua scripts as Redis gets them: composed for every shape, and for several policies together. The modules
// alone would not do, as they use each other's names. Needs the build and luacheck (scripts/programs.js).
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket } from '@sluice/core'
import { composeScript } from '../../packages/core/dist/cjs/stores/redis/script/compose.js'
import { modules } from '../../packages/core/dist/cjs/stores/redis/script/modules.gen.js'

const minute = { limit: 10, window: /** @type {const} */ ('1m') }
const alone = {
  'fixed-window': fixedWindow(minute),
  'sliding-log': slidingLog(minute),
  'sliding-window': slidingWindow(minute),
  'sliding-window-weighted': slidingWindow({ ...minute, count: 'weighted' }),
  'token-bucket': tokenBucket(minute),
  'token-bucket-interval': tokenBucket({ ...minute, refill: 'interval' }),
  'leaky-bucket': leakyBucket(minute),
  gcra: gcra(minute),
  'gcra-slots': gcra({ ...minute, slots: 16 }),
}
const folder = mkdtempSync(join(tmpdir(), 'sluice-lua-'))
try {
  for (const [name, policy] of Object.entries(alone)) {
    write(name, [policy])
    write(`${name}-penalty`, [policy], { after: 3, block: 1e9, factor: 2, maxBlock: 1e12, forgetAfter: 1e12 })
  }
  write('all', Object.values(alone))
  writeFileSync(join(folder, 'semaphore.lua'), modules.semaphore ?? '')
  const options = ['--std', 'lua51', '--read-globals', 'redis', 'struct', 'KEYS', 'ARGV', 'table.unpack']
  // What a list of shapes does not need is left out of no module, so that much stays unused in each script.
  const unused = ['--no-unused', '--no-max-line-length', '--ignore', '511']
  execFileSync('luacheck', ['--no-color', folder, ...options, ...unused], { stdio: 'inherit' })
} catch {
  process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true })
}

/**
 * @param {string} name
 * @param {readonly import('@sluice/core').Policy[]} policies
 * @param {import('@sluice/core/store').Penalty} [penalty]
 */
function write(name, policies, penalty) {
  writeFileSync(join(folder, `${name}.lua`), composeScript(policies, penalty))
}

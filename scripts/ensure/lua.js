// Makes sure that luacheck and lua5.1 are there, installing Debian's packages if it can, then runs the command it was
// given: node scripts/ensure/lua.js luacheck lua. Where they cannot be had it says so in one line and skips.
import { spawnSync } from 'node:child_process'
import { install, isThere } from './debian.js'

const [command, ...args] = process.argv.slice(2)
const why = ['luacheck', 'lua5.1'].every(isThere) ? undefined : install(['lua-check', 'lua5.1'])

if (why) {
  console.log(`skipped ${command ?? 'Lua'}: no luacheck or lua5.1 in PATH (${why}); Debian: lua-check lua5.1`)
} else if (command) {
  process.exitCode = spawnSync(command, args, { stdio: 'inherit' }).status ?? 1
}

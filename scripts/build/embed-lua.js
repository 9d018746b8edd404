// Writes lua/*.lua into the sources of core as text, so that nothing is read from disk at run time.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { luaModules } from './lua-modules.js'

const target = 'packages/core/src/stores/redis/script/modules.gen.ts'
const text = luaModules()
// The compiler reads what has changed.
if (!existsSync(target) || readFileSync(target, 'utf8') !== text) writeFileSync(target, text)

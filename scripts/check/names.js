// Lists names of types that stand for two things: npm run check -- names. One name, one declaration, over all packages that
// are published; what is listed below is one public name for the same thing in each adapter.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const SHARED = new Set(['RateLimitOptions'])
const DECLARATION = /^(?:export )?(?:abstract )?(?:interface|class|type) (\w+)/gm

/** @type {Map<string, string[]>} */
const filesOf = new Map()
for (const name of readdirSync('packages')) {
  const { private: isPrivate = false } = JSON.parse(readFileSync(`packages/${name}/package.json`, 'utf8'))
  if (isPrivate) continue
  for (const file of readdirSync(`packages/${name}/src`, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue
    const path = join('packages', name, 'src', file)
    for (const [, type = ''] of readFileSync(path, 'utf8').matchAll(DECLARATION)) {
      const files = filesOf.get(type) ?? []
      if (!files.includes(path)) filesOf.set(type, [...files, path])
    }
  }
}
const twice = [...filesOf].filter(([type, files]) => files.length > 1 && !SHARED.has(type))
for (const [type, files] of twice) console.log(`${type} is declared in ${files.join(' and ')}`)
console.log(`${filesOf.size} names of types, ${twice.length} declared twice`)
process.exitCode = twice.length > 0 ? 1 : 0

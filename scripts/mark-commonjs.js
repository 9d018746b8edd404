// Says of every dist/cjs that it is CommonJS; the packages themselves are "type": "module".
import { existsSync, readdirSync, writeFileSync } from 'node:fs'

for (const name of readdirSync('packages')) {
  const folder = `packages/${name}/dist/cjs`
  if (existsSync(folder)) writeFileSync(`${folder}/package.json`, '{"type":"commonjs"}\n')
}

// npm run site: builds the site into site/dist, which any static host serves under any base path.
import { spawnSync } from 'node:child_process'
import { build, install, onSources } from './subjects.js'

build()
install('scripts/check/api')
install('site')
const { status } = spawnSync(process.execPath, [...onSources, 'site/build.js'], { stdio: 'inherit' })
process.exitCode = status ?? 1

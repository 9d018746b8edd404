// The cost to install and to load each package, beside peers: npm run verify -- imports. Bytes are those of the package
// and all it depends on; CPU and time are medians of fresh processes. Exit 1 when core takes more CPU to load than
// rate-limiter-flexible. Needs the build.
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { median } from '@sluice/harness/figures'

const PACKAGES = ['@sluice/core', '@sluice/express', '@sluice/koa', '@sluice/fastify']
const PEERS = [
  'rate-limiter-flexible',
  'express-rate-limit',
  'koa-ratelimit',
  '@fastify/rate-limit',
  'bottleneck',
]
const ROUNDS = 15

/** @type {Map<string, { cpu: number[], wall: number[] }>} */
const loads = new Map()
for (let round = 0; round < ROUNDS; round++) {
  for (const name of [...PACKAGES, ...PEERS]) {
    for (const style of ['ESM', 'CJS']) {
      const { cpu, wall } = load(name, style)
      const all = loads.get(`${style} ${name}`) ?? { cpu: [], wall: [] }
      loads.set(`${style} ${name}`, { cpu: [...all.cpu, cpu], wall: [...all.wall, wall] })
    }
  }
}

console.log(
  `${''.padEnd(24)} ${['kB', 'ESM CPU ms', 'ms', 'CJS CPU ms', 'ms'].map((title) => title.padStart(10)).join(' ')}`,
)
for (const name of [...PACKAGES, ...PEERS]) {
  const cells = ['ESM', 'CJS'].flatMap((style) => {
    const { cpu = [], wall = [] } = loads.get(`${style} ${name}`) ?? {}
    return [median(cpu).toFixed(1), median(wall).toFixed(1)]
  })
  const kilobytes = (installedBytes(name) / 1000).toFixed(0)
  console.log(`${name.padEnd(24)} ${[kilobytes, ...cells].map((cell) => cell.padStart(10)).join(' ')}`)
}
for (const style of ['ESM', 'CJS']) {
  const [own, peer] = ['@sluice/core', 'rate-limiter-flexible'].map((name) =>
    median(loads.get(`${style} ${name}`)?.cpu ?? []),
  )
  if (Number(own) > Number(peer)) process.exitCode = 1
}

/**
 * @param {string} name
 * @param {string} style
 * @returns {{ cpu: number, wall: number }} milliseconds.
 */
function load(name, style) {
  const script = `
    const before = process.cpuUsage(), start = performance.now()
    ${style === 'ESM' ? 'await import' : 'require'}('${name}')
    const wall = performance.now() - start, { user, system } = process.cpuUsage(before)
    console.log(JSON.stringify({ cpu: (user + system) / 1000, wall }))
    process.exit()`
  const type = style === 'ESM' ? 'module' : 'commonjs'
  return JSON.parse(
    execFileSync(process.execPath, [`--input-type=${type}`, '-e', script], { encoding: 'utf8' }),
  )
}

/** @param {string} name of a package in the root. */
function installedBytes(name) {
  const seen = new Set()
  const visit = (/** @type {string} */ folder) => {
    if (seen.has(folder)) return 0
    seen.add(folder)
    const { dependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    let bytes = bytesOf(folder)
    for (const dependency of Object.keys(dependencies)) bytes += visit(folderOf(dependency, folder))
    return bytes
  }
  return visit(folderOf(name, '.'))
}

/**
 * @param {string} name
 * @param {string} from
 * @returns {string}
 */
function folderOf(name, from) {
  const paths = createRequire(join(process.cwd(), from, 'package.json')).resolve.paths(name) ?? []
  const folder = paths.map((path) => join(path, name)).find((path) => existsSync(join(path, 'package.json')))
  if (folder === undefined) throw new Error(`${name} is not installed`)
  return folder.slice(process.cwd().length + 1)
}

/** As packed: of our own packages, what the tarball holds. @param {string} folder @returns {number} */
function bytesOf(folder) {
  if (folder.startsWith('node_modules/@sluice/')) {
    const packed = execFileSync(process.execPath, [
      process.env.npm_execpath ?? 'npm run verify -- imports', // Node cannot start npm by name on Windows
      'pack',
      `./${folder}`,
      '--dry-run',
      '--json',
      '--ignore-scripts',
      '--offline',
    ])
    return JSON.parse(String(packed))[0].unpackedSize
  }
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (file) => !file.includes('node_modules/'),
  )
  const stats = files.map((file) => statSync(join(folder, file)))
  return stats.reduce((sum, stat) => sum + (stat.isFile() ? stat.size : 0), 0)
}

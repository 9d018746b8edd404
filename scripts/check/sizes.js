// Prints what a bundle takes of each entry, minified and by gzip, beside what it may take at most: npm run check -- sizes. Exit 1 where one has grown.
import { build } from 'esbuild'
import { gzipSync } from 'node:zlib'

/** Kilobytes by gzip, at most. @type {Readonly<Record<string, readonly [string, number]>>} */
const ENTRIES = {
  gcra: ["export { gcra } from '@sluice/core'", 4.7],
  createLimiter: ["export { createLimiter, slidingLog } from '@sluice/core'", 33.5],
  'createLimiter, Redis': [
    "export { redisStore } from '@sluice/core/redis'; export { createLimiter, slidingLog } from '@sluice/core'",
    80.4,
  ],
  'rateLimit of Express': ["export { rateLimit } from '@sluice/express'", 47.5],
  'rateLimit of Hono': ["export { rateLimit } from '@sluice/hono'", 47.3],
  limited: ["export { limited } from '@sluice/http'", 46.6],
}

for (const [name, [contents, most]] of Object.entries(ENTRIES)) {
  const kilobytes = await sizeOf(contents)
  const grown = kilobytes > most
  if (grown) process.exitCode = 1
  console.log(`${grown ? '✗' : '✓'} ${name.padEnd(21)} ${kilobytes.toFixed(2)} kB gzip of at most ${most}`)
}

/**
 * @param {string} contents the module that a user bundles
 * @returns {Promise<number>} kilobytes
 */
async function sizeOf(contents) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: process.cwd() },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    external: ['hono', 'express', 'ioredis', 'iovalkey', 'redis', 'node:*'],
    write: false,
    logLevel: 'error',
  })
  return gzipSync(outputFiles[0]?.contents ?? '', { level: 9 }).length / 1000
}

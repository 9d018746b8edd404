// Prints what a bundle takes of each entry, minified and by gzip, beside what it may take at most and what it is to take:
// npm run check -- sizes. Exit 1 where one has grown.
import { build } from 'esbuild'
import { gzipSync } from 'node:zlib'

/** Kilobytes by gzip: the most that is accepted, and the goal. @type {Readonly<Record<string, readonly [string, number, number]>>} */
const ENTRIES = {
  createLimiter: ["export { createLimiter, slidingLog } from '@sluice/core'", 20.5, 22],
  'createLimiter, Redis': [
    "export { redisStore } from '@sluice/core/redis'; export { createLimiter, slidingLog } from '@sluice/core'",
    60,
    60,
  ],
  'rateLimit of Express': ["export { rateLimit } from '@sluice/express'", 31.5, 30],
  'rateLimit of Hono': ["export { rateLimit } from '@sluice/hono'", 31.7, 30],
  limited: ["export { limited } from '@sluice/http'", 31.3, 30],
}

for (const [name, [contents, most, goal]] of Object.entries(ENTRIES)) {
  const kilobytes = await sizeOf(contents)
  const grown = kilobytes > most
  if (grown) process.exitCode = 1
  const met = kilobytes <= goal ? 'goal met' : `goal ${goal} missed`
  console.log(
    `${grown ? '✗' : '✓'} ${name.padEnd(21)} ${kilobytes.toFixed(1)} kB gzip of at most ${most}, ${met}`,
  )
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

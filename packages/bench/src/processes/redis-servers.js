// Real servers on loopback: those of the tests.
import { build } from 'esbuild'
import { fileURLToPath } from 'node:url'

/** @typedef {import('../outage/outage.js').RedisServer} RedisServer */
/** @typedef {{ masters: { host: string, port: number }[], stop(): Promise<void> }} Cluster */

/** @param {readonly string[]} args Of the program. @returns {Promise<RedisServer>} */
export async function startRedis(args = []) {
  return (await load('redis-server')).startRedis({ args })
}

/** @param {number} masters @returns {Promise<Cluster>} */
export async function startCluster(masters) {
  // A master that has met no other does not know its own address, and clients cannot find it.
  const args = ['--cluster-announce-ip', '127.0.0.1']
  return (await load('cluster')).startCluster({ masters, args })
}

/** @param {'redis-server' | 'cluster'} name */
async function load(name) {
  const outfile = fileURLToPath(new URL(`../../dist/${name}.js`, import.meta.url))
  const source = new URL(`../../../core/test/redis/servers/${name}.ts`, import.meta.url)
  const bundle = {
    bundle: true,
    platform: /** @type {const} */ ('node'),
    format: /** @type {const} */ ('esm'),
  }
  await build({ entryPoints: [fileURLToPath(source)], outfile, ...bundle })
  return import(outfile)
}

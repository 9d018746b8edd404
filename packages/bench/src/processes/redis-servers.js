// Real servers on loopback: those of the tests.
import { startCluster as startNodes, startRedis as startServer } from '@sluice/harness/redis'

/** @param {readonly string[]} args Of the program. */
export function startRedis(args = []) {
  return startServer({ args })
}

/** @param {number} masters */
export function startCluster(masters) {
  // A master that has met no other does not know its own address, and clients cannot find it.
  return startNodes({ masters, args: ['--cluster-announce-ip', '127.0.0.1'] })
}

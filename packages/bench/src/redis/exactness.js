// Nothing is fast that lets too much through: the same callers, against limits that they reach.
import { startClient } from './clients.js'

const A_DAY = 86_400_000

/**
 * @param {import('./connection.js').Address} address
 * @param {import('./connection.js').Client} control
 * @returns {Promise<string[]>} what was found to be right
 */
export async function checkExactness(address, control) {
  const found = []
  for (const name of ['Sluice', 'Sluice, three policies']) {
    for (const { limit, keys } of [
      { limit: 1000, keys: 1 },
      { limit: 10, keys: 200 },
    ]) {
      const client = startClient(name, { limit, windowMs: A_DAY }, address)
      try {
        const { admitted, calls } = await client.ask({ callers: 256, keys, calls: 4000, denialsToo: true })
        if (admitted !== limit * keys)
          throw new Error(`${name} admitted ${admitted} where ${limit * keys} is right`)
        found.push(
          `${name}: 256 callers made ${calls} calls of ${keys} keys at limit ${limit}; exactly ${admitted} passed`,
        )
      } finally {
        await client.stop()
        await control.flushall()
      }
    }
  }
  return found
}

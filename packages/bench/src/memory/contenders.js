// Everyone who decides in this process.
import { floors } from './contenders/floors.js'
import { peers } from './contenders/peers.js'
import { sluice } from './contenders/sluice.js'

/** @typedef {import('../contender.js').Contender} Contender */

/** @type {Record<string, (limit: import('../contender.js').Limit) => Contender | Promise<Contender>>} */
export const contenders = { ...floors, ...sluice, ...peers }

/** @param {string} name */
export function contenderNamed(name) {
  const open = contenders[name]
  if (!open) throw new Error(`there is no contender ${name}`)
  return open
}

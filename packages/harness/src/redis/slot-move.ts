import { type Address, command } from './command.js'
import type { ClusterNode } from './cluster-node.js'

/** Moves a slot and its keys as `redis-cli --cluster reshard` does; `masters` learn the outcome. */
export async function moveSlot(
  slot: number,
  from: ClusterNode,
  to: ClusterNode,
  masters: readonly ClusterNode[],
): Promise<void> {
  const setSlot = (node: Address, ...state: [string, string]) =>
    command(node, 'CLUSTER', 'SETSLOT', slot, ...state)
  await setSlot(to, 'IMPORTING', from.id)
  await setSlot(from, 'MIGRATING', to.id)
  for (;;) {
    const keys = await command<string[]>(from, 'CLUSTER', 'GETKEYSINSLOT', slot, 100)
    if (keys.length === 0) break
    await command(from, 'MIGRATE', to.host, to.port, '', 0, 5000, 'KEYS', ...keys)
  }
  // The new owner first: were it last, calls would bounce between two nodes of which neither owns the slot.
  const others = masters.filter((node) => node !== to && node !== from)
  for (const node of [to, from, ...others]) await setSlot(node, 'NODE', to.id)
}

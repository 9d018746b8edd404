import type { Policy } from '../../policy.js'
import { modules } from './modules.gen.js'

/*
 * A script for each list of shapes: the engine with the modules that the list needs, lines repeated for each policy
 * and state in plain locals. In Redis this takes about half of what tables and closures take. Limits and capacities
 * are arguments; everything else about a shape is a literal.
 */

/** Bytes of the state before the cells: written, last, held, blocked, epoch, version, expires. */
const HEADER_BYTES = 56

/** The script for lists of these shapes. Lists that differ in limits and capacities alone have the same one. */
export function composeScript(policies: readonly Policy[]): string {
  const parts = policies.map(describe)
  const cells = parts.flatMap((part) => part.cells)
  const fixed = place(parts, HEADER_BYTES + 8 * cells.length)
  const rings = parts.filter((part) => part.slots === 'cap')
  const words: Record<string, string> = {
    modules: [...new Set(parts.flatMap((part) => part.modules))].map((name) => modules[name]).join('\n'),
    numbers: parts.map(({ i }) => `limit_${i}, capacity_${i}`).join(', '),
    number_formats: 'dd'.repeat(parts.length),
    cells: cells.join(', '),
    cell_formats: 'd'.repeat(cells.length),
    cell_bytes: `${8 * cells.length}`,
    fixed: `${fixed}`,
    has_rings: `${rings.length > 0}`,
    has_slots: `${parts.some((part) => part.slots)}`,
    length: [fixed, ...rings.map(({ i }) => `8 * cap_${i}`)].join(' + '),
    longest: `${Math.max(...policies.map((policy) => policy.window))}`,
    parts:
      parts.length === 1
        ? ''
        : parts.map(({ i }) => ` .. pack('<ddd', earliest_${i}, remaining_${i}, reset_${i})`).join(''),
  }
  return modules['engine']!.replace(
    /^( *)--@(each|ring) (.*)$/gm,
    (_, indent: string, which: string, line: string) =>
      (which === 'each' ? parts : rings).map((part) => indent + forPart(line, part)).join('\n'),
  )
    .replace(/@\{modules\}/, () => words['modules']!)
    .replace(/@\{(\w+)\}/g, (_, word: string) => words[word]!)
}

/** One policy of the list, in the script's words. */
interface Part {
  readonly i: number
  /** What the algorithm's functions begin with. */
  readonly prefix: string
  readonly modules: readonly string[]
  readonly cells: readonly string[]
  /** Slots in the words of the module: `cap` for a ring that grows, `buckets + 1`, or none. */
  readonly slots: string | undefined
  readonly policy: Policy
  /** Where its slots begin, in bytes. */
  base: string
}

function describe(policy: Policy, index: number): Part {
  const i = index + 1
  const { name } = policy.algorithm
  const module = Object.keys(modules)
    .filter((file) => name === file || name.startsWith(`${file}-`))
    .at(-1)
  if (!module) throw new Error(`algorithm '${name}' has no module in lua/`)
  const told = (what: string): string[] =>
    new RegExp(`^-- ${what}: (.*)$`, 'm').exec(modules[module]!)?.[1]!.split(', ') ?? []
  return {
    i,
    prefix: name.replaceAll('-', '_'),
    modules: [...told('needs'), module],
    cells: told('cells').map((cell) => `${cell}_${i}`),
    slots: told('slots')[0],
    policy,
    base: '',
  }
}

/** Lays out the slots: counted ones first, then rings, whose places depend on each other's size. */
function place(parts: readonly Part[], start: number): number {
  let end = start
  for (const part of parts) {
    if (part.slots === undefined || part.slots === 'cap') continue
    part.base = `${end}`
    end += 8 * (part.policy.buckets + 1)
  }
  const before: string[] = []
  for (const part of parts) {
    if (part.slots !== 'cap') continue
    part.base = [end, ...before].join(' + ')
    before.push(`8 * cap_${part.i}`)
  }
  return end
}

function forPart(line: string, part: Part): string {
  const { i, policy, cells } = part
  const words: Record<string, string> = {
    i: `${i}`,
    f: part.prefix,
    cells: cells.join(', '),
    state: [...cells, ...(part.base ? [part.base] : [])].join(', '),
    numbers: [
      `limit_${i}, capacity_${i}`,
      policy.window,
      policy.windowTicks,
      policy.tick,
      policy.buckets,
    ].join(', '),
    sane: cells.map((cell) => `${cell} >= 0 and ${cell} <= EXACT and ${cell} % 1 == 0`).join(' and '),
  }
  return line.replace(/\$([a-z]+)/g, (_, word: string) => words[word]!)
}

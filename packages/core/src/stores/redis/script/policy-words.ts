import type { Policy } from '../../../algorithms/contract/policy.js'
import { modules } from './modules.gen.js'
import { known, type Words } from './template.js'

/** One policy of a list, and what the module of its algorithm in lua/ says about itself. */
export interface ScriptPolicy {
  /** Its number in the list, from 1. */
  readonly i: number
  readonly policy: Policy
  /** Prefix of the algorithm's Lua functions: its own name, or that of the algorithm it shares them with. */
  readonly prefix: string
  /** The modules that it needs, in the order in which they have to come. */
  readonly modules: readonly string[]
  readonly cells: readonly string[]
  /** `'ring'` for slots that grow with use, a number of slots, or none. */
  readonly slots: number | 'ring' | undefined
  /** Conditions on the cells of every state that a call has written. */
  readonly valid: readonly string[]
  /** The function that decides a plain call: its parameters, body and results. */
  readonly take: RegExpExecArray | null
}

/** @throws {Error} where lua/ has no module for the algorithm, or one with a header that makes no sense. */
export function describePolicy(policy: Policy, index: number): ScriptPolicy {
  const i = index + 1
  const { name } = policy.algorithm
  const module = Object.keys(modules)
    .filter((file) => name === file || name.startsWith(`${file}-`))
    .toSorted((a, b) => a.length - b.length)
    .at(-1)
  if (!module) throw new Error(`algorithm '${name}' has no module in lua/`)
  const header = (field: string): string[] | undefined =>
    new RegExp(`^-- ${field}: (.*)$`, 'm').exec(modules[module]!)?.[1]!.split(', ')
  const cells = header('cells') ?? []
  const needed = [...(header('needs') ?? []), module]
  const prefix = ((name === module && header('functions')?.[0]) || name).replaceAll('-', '_')
  const take = new RegExp(`local function ${prefix}_take\\(([^)]*)\\)\n([^]*?)\nreturn ([^]*?)\nend\n`)
  const conditions = header(`valid of ${name}`) ?? header('valid') ?? []
  return {
    i,
    policy,
    prefix,
    modules: needed,
    cells: cells.map((cell) => `${cell}_${i}`),
    slots: slotsOf(header('slots')?.[0], policy),
    valid: conditions.map((condition) => inScript(condition, cells, policy, i)),
    take: take.exec(needed.map((file) => `${known(modules, file, 'module')}\n`).join('')),
  }
}

function slotsOf(written: string | undefined, { buckets }: Policy): number | 'ring' | undefined {
  if (written === undefined) return undefined
  if (written === 'cap') return 'ring'
  const [, more] = /^buckets \+ (\d+)$/.exec(written) ?? []
  if (more === undefined) throw new Error(`lua/ has the unknown number of slots '${written}'`)
  return buckets + Number(more)
}

/** A condition of a module with the cells and numbers of one policy in it. */
function inScript(condition: string, cells: readonly string[], policy: Policy, i: number): string {
  const { window, tick, buckets } = policy
  const words: Record<string, string> = { window: `${window}`, tick: `${tick}`, buckets: `${buckets}` }
  for (const cell of cells) words[cell] = `${cell}_${i}`
  for (const lua of ['latest', 'expires', 'and', 'or', 'not']) words[lua] = lua
  return condition.replace(/\b[a-z]\w*/g, (word) => known(words, word, 'word'))
}

/** Where the slots of each policy begin, in bytes, and where those end that do not grow. */
export interface SlotOffsets {
  /** Lua expressions, by the number of the policy; none for one without slots. */
  readonly bases: Readonly<Record<number, string>>
  readonly end: number
}

/** Lays out the slots: those of a fixed number first, then rings, whose places depend on each other's size. */
export function placeSlots(all: readonly ScriptPolicy[], start: number): SlotOffsets {
  const bases: Record<number, string> = {}
  let end = start
  for (const { i, slots } of all) {
    if (typeof slots !== 'number') continue
    bases[i] = `${end}`
    end += 8 * slots
  }
  const before: string[] = []
  for (const { i, slots } of all) {
    if (slots !== 'ring') continue
    bases[i] = [end, ...before].join(' + ')
    before.push(`8 * cap_${i}`)
  }
  return { bases, end }
}

/** The words of one policy in a line that is repeated. */
export function wordsOf(part: ScriptPolicy, base: string | undefined): Words {
  const { i, policy, cells } = part
  const shape = `capacity_${i}, ${policy.window}, ${policy.windowTicks}, ${policy.tick}, ${policy.buckets}`
  const numbers = `limit_${i}, ${shape}`
  const state = base === undefined ? cells : [...cells, base]
  const isWhole = cells.map((cell) => `${cell} >= 0 and ${cell} <= EXACT and ${cell} % 1 == 0`)
  return {
    i: `${i}`,
    algorithm: part.prefix,
    cells: cells.join(', '),
    state: state.join(', '),
    numbers,
    slowest: `slowest_${i}, ${shape}`,
    sane: [...isWhole, ...part.valid].join(' and '),
    take: part.take ? takeInPlace(part, part.take, [...state, ...numbers.split(', ')]) : '',
  }
}

/** The body of `take` with its arguments in it, and what it returns in the variables of the plain call. */
function takeInPlace(
  { i, cells, slots }: ScriptPolicy,
  [, params, body, results]: RegExpExecArray,
  args: readonly string[],
): string {
  const names = params!.split(',').map((param) => param.trim())
  const inPlace = (text: string): string =>
    text.replace(/[a-z_]\w*/g, (word) => {
      const arg = args[names.indexOf(word)]
      return arg === undefined ? word : / /.test(arg) ? `(${arg})` : arg
    })
  const variables = ['passes', ...cells, `remaining_${i}`, `reset_${i}`]
  if (slots !== undefined) variables.push(`slot_${i}`, `bytes_${i}`)
  return `do\n${inPlace(body!)}\n${variables.join(', ')} = ${inPlace(results!)}\nend`
}

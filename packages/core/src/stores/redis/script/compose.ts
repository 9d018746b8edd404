import type { Policy } from '../../../algorithms/contract/policy.js'
import { modules } from './modules.gen.js'
import { withOperators } from './operators.js'
import { OPERATIONS, REASONS } from '../wire.js'

/*
 * A script for each list of shapes: the engine with the modules that the list needs, lines repeated for each policy
 * and state in plain locals. In Redis this takes about half of what tables and closures take. Limits and capacities
 * are arguments; everything else about a shape is a literal.
 */

/**
 * Bytes of the state before the cells: epoch, held, blocked, last, born; from HOT on expires, barred; from HOTTEST on
 * written.
 */
const HEADER_BYTES = 64
const HOT = 40
const HOTTEST = 56

/**
 * Under more policies than this a key that comes alone is decided in a function as well: the variables of the engine and
 * the functions of the modules would be more than the 200 that Lua allows in one place.
 */
const FEW_POLICIES = 5

/** The script for lists of these shapes. Lists that differ in limits and capacities alone have the same one. */
export function composeScript(policies: readonly Policy[]): string {
  const parts = policies.map(describe)
  const cells = parts.flatMap((part) => part.cells)
  const version = HEADER_BYTES + 8 * cells.length
  const fixed = place(parts, version + 8)
  const rings = parts.filter((part) => part.slots === 'cap')
  const slotted = parts.filter((part) => part.slots)
  const counted = slotted.filter((part) => part.slots !== 'cap')
  const numbers = parts.map(({ i }) => `limit_${i}, capacity_${i}`).join(', ')
  const load =
    rings.length > 0 ? `redis.pcall('GETRANGE', key, '0', '${fixed - 1}')` : "redis.pcall('GET', key) or ''"
  const words: Record<string, string> = {
    call: `cost, nonce, op, count, clock, span, rest, ${numbers}`,
    numbers,
    number_formats: 'dd'.repeat(parts.length),
    slowest: parts.map(({ i }) => `slowest_${i}`).join(', '),
    slowest_formats: 'd'.repeat(parts.length),
    cells: cells.join(', '),
    cell_formats: 'd'.repeat(cells.length),
    cell_bytes: `${8 * cells.length}`,
    zeros: cells.map(() => '0').join(', '),
    hot_bytes: `${HOT}`,
    hottest: `${HOTTEST}`,
    version: `${version}`,
    slots: `${version + 8}`,
    fixed: `${fixed}`,
    together: slotted.length > 0 ? '1' : 'HUGE',
    length: [fixed, ...rings.map(({ i }) => `8 * cap_${i}`)].join(' + '),
    has_rings: `${rings.length > 0}`,
    load,
    load_all: rings.length > 0 ? 'nil' : "call('MGET', (table.unpack or _G.unpack)(KEYS))",
    load_one: rings.length > 0 ? load : "states[i] or ''",
    longest: `${Math.max(...policies.map((policy) => policy.window))}`,
    view: parts.map(({ i }) => `remaining_${i}, reset_${i}`).join(', '),
    view_formats: 'dd'.repeat(parts.length),
    parts:
      parts.length === 1
        ? ''
        : parts.map(({ i }) => ` .. pack('<ddd', earliest_${i}, remaining_${i}, reset_${i})`).join(''),
  }
  const repeated: Record<string, readonly Part[]> = {
    each: parts,
    ring: rings,
    rings: rings.slice(0, 1),
    bucket: counted,
    buckets: counted.slice(0, 1),
    slotted,
    slots: slotted.slice(0, 1),
  }
  const isFew = parts.length <= FEW_POLICIES
  const alone = modules['alone']!.replace('@{decision}', isFew ? '@{engine}' : 'return decide(@{call})')
  const hot = parts.every((part) => part.take) ? modules['hot']! : ''
  const [before, after] = modules['script']!.replace('@{alone_first}', isFew ? alone : '')
    .replace('@{alone_last}', isFew ? '' : alone)
    .replaceAll('@{hot}', hot)
    .replace(/@\{(engine|argument)\}/g, (_, part: string) => known(modules, part))
    .replace(/^( *)--@(\w+) (.*)$/gm, (_, indent: string, which: string, line: string) =>
      known(repeated, which)
        .map((part) => indent + forPart(line, part))
        .join('\n'),
    )
    .split('@{modules}') as [string, string]
  const needed = [...new Set(parts.flatMap((part) => part.modules))].map((name) => modules[name]!)
  const script = `${before}${withoutUnused(needed, after)}`
    .replace(/@\{(\w+)\}/g, (_, word: string) => known(words, word))
    .replace(/\b[A-Z]+\b/g, (word) => CONSTANTS[word] ?? word)
  return withOperators(script)
}

/** A word that a text of lua/ uses. One that is misspelt fails when a script is composed, and not in Redis. */
function known<T>(words: Readonly<Record<string, T>>, word: string): T {
  if (!Object.hasOwn(words, word)) throw new Error(`lua/ uses the unknown word '${word}'`)
  return words[word]!
}

/** What the modules and the engine write in capitals. Literals cost a call nothing, locals do. */
const CONSTANTS: Readonly<Record<string, string>> = {
  ...numbered(Object.entries(OPERATIONS)),
  ...numbered(REASONS.flatMap((reason, i) => (reason ? [[reason, i] as const] : []))),
  HUGE: '1e309',
  /** Whole numbers up to here are exact. */
  EXACT: '9007199254740992',
  /** 2^50 microseconds: no instant is booked, held or blocked further ahead; state that says so is broken. */
  FAR: '1125899906842624',
  /** No key expires later, as Redis takes no longer time to live. */
  NEVER: '1e21',
}

function numbered(names: readonly (readonly [string, number])[]): Record<string, string> {
  return Object.fromEntries(names.map(([name, number]) => [name.toUpperCase(), `${number}`]))
}

/** Puts modules before what uses them. Functions that nothing calls are left out: each costs every call some time. */
function withoutUnused(modules: readonly string[], rest: string): string {
  const pieces = modules.flatMap((module) => `${module}\n`.split(/^(?=local function )/m))
  return pieces.reduceRight((script, piece) => {
    const name = /^local function (\w+)/.exec(piece)?.[1]
    return !name || new RegExp(`\\b${name}\\b`).test(script) ? piece + script : script
  }, rest)
}

/** One policy of the list, in the script's words. */
interface Part {
  readonly i: number
  /** What the algorithm's functions begin with: its name, or that of the algorithm whose functions it uses. */
  readonly prefix: string
  readonly modules: readonly string[]
  readonly cells: readonly string[]
  /** Slots in the words of the module: `cap` for a ring that grows, `buckets + n`, or none. */
  readonly slots: string | undefined
  /** What is true of the cells of every state that a call has written. */
  readonly holds: readonly string[]
  /** The function that decides a plain call, which is put where it is called. */
  readonly take: RegExpExecArray | null
  readonly policy: Policy
  /** Where its slots begin, in bytes. */
  base: string
}

function describe(policy: Policy, index: number): Part {
  const i = index + 1
  const { name } = policy.algorithm
  const module = Object.keys(modules)
    .filter((file) => name === file || name.startsWith(`${file}-`))
    .toSorted((a, b) => a.length - b.length)
    .at(-1)
  if (!module) throw new Error(`algorithm '${name}' has no module in lua/`)
  const found = (what: string): string[] | undefined =>
    new RegExp(`^-- ${what}: (.*)$`, 'm').exec(modules[module]!)?.[1]!.split(', ')
  const told = (what: string): string[] => found(what) ?? []
  const holds = found(`holds of ${name}`) ?? told('holds')
  const prefix = ((name === module && told('functions')[0]) || name).replaceAll('-', '_')
  const needed = [...told('needs'), module]
  const take = new RegExp(`local function ${prefix}_take\\(([^)]*)\\)\n([^]*?)\nreturn ([^]*?)\nend\n`)
  return {
    i,
    prefix,
    take: take.exec(needed.map((file) => `${modules[file]!}\n`).join('')),
    modules: needed,
    cells: told('cells').map((cell) => `${cell}_${i}`),
    holds: holds.map((condition) => inScript(condition, told('cells'), policy, i)),
    slots: told('slots')[0],
    policy,
    base: '',
  }
}

/** A condition of a module, with the cells and numbers of one policy in it. */
function inScript(condition: string, cells: readonly string[], policy: Policy, i: number): string {
  return condition.replace(/\w+/g, (word) => {
    if (cells.includes(word)) return `${word}_${i}`
    return word === 'window' || word === 'tick' || word === 'buckets' ? `${policy[word]}` : word
  })
}

/** Lays out the slots: counted ones first, then rings, whose places depend on each other's size. */
function place(parts: readonly Part[], start: number): number {
  let end = start
  for (const part of parts) {
    if (part.slots === undefined || part.slots === 'cap') continue
    part.base = `${end}`
    end += 8 * (part.policy.buckets + Number(/^buckets \+ (\d+)$/.exec(part.slots)![1]))
  }
  const before: string[] = []
  for (const part of parts) {
    if (part.slots !== 'cap') continue
    part.base = [end, ...before].join(' + ')
    before.push(`8 * cap_${part.i}`)
  }
  return end
}

/** The body of the function with its arguments in it, and what it returns in the variables of the plain call. */
function taken(
  { i, cells, slots }: Part,
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
  if (slots) variables.push(`slot_${i}`, `bytes_${i}`)
  return `do\n${inPlace(body!)}\n${variables.join(', ')} = ${inPlace(results!)}\nend`
}

function forPart(line: string, part: Part): string {
  const { i, policy, cells } = part
  const rest = `capacity_${i}, ${policy.window}, ${policy.windowTicks}, ${policy.tick}, ${policy.buckets}`
  const numbers = `limit_${i}, ${rest}`
  const state = [...cells, ...(part.base ? [part.base] : [])]
  const words: Record<string, string> = {
    i: `${i}`,
    f: part.prefix,
    cells: cells.join(', '),
    state: state.join(', '),
    numbers,
    take: part.take ? taken(part, part.take, [...state, ...numbers.split(', ')]) : '',
    slowest: `slowest_${i}, ${rest}`,
    sane: [
      ...cells.map((cell) => `${cell} >= 0 and ${cell} <= EXACT and ${cell} % 1 == 0`),
      ...part.holds,
    ].join(' and '),
  }
  return line.replace(/\$([a-z]+)/g, (_, word: string) => known(words, word))
}

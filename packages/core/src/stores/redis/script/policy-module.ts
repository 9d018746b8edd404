import type { Policy } from '../../../algorithms/contract/policy.js'
import { modules } from './modules.gen.js'
import { known } from './template.js'

/** A text of lua/, by the name of its file. */
export function textOf(name: string): string {
  return known(modules, name, 'module')
}

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
  /** The numbers that a call brings for it: limit, capacity, and what its module asks for beside them. */
  readonly brought: readonly string[]
  /** `'ring'` for slots that grow with use, a number of slots, or none. */
  readonly slots: number | 'ring' | undefined
  /** Conditions on the cells of every state that a call has written. */
  readonly valid: readonly string[]
  /** The function that decides a plain call: its parameters, body and results. */
  readonly take: RegExpExecArray | null
}

/**
 * Returns the facts about a policy from which a script is composed: the Lua modules it needs, its cells and slots (the numbers
 * kept for a key, by name and by position), what makes them valid, and the text of its `take`, which decides a plain call. They
 * are read from the comments at the head of the algorithm's module in lua/. `index` counts policies from 0.
 * @throws {Error} where lua/ has no module for the algorithm, or one with a header that makes no sense.
 */
export function describePolicy(policy: Policy, index: number): ScriptPolicy {
  const i = index + 1
  const { name } = policy.algorithm
  const module = moduleOf(name)
  const headerField = (field: string): string[] | undefined =>
    new RegExp(`^-- ${field}: (.*)$`, 'm').exec(modules[module]!)?.[1]!.split(', ')
  const cells = headerField('cells') ?? []
  const needed = [...(headerField('needs') ?? []), module]
  const prefix = ((name === module && headerField('functions')?.[0]) || name).replaceAll('-', '_')
  const conditions = headerField(`valid of ${name}`) ?? headerField('valid') ?? []
  const valid = conditions.map((condition) => inScript(condition, cells, policy, i))
  const slots = slotsOf(headerField('slots')?.[0], policy)
  const take = takeIn(needed.map((file) => `${textOf(file)}\n`).join(''), prefix)
  const numbered = (names: readonly string[]): string[] => names.map((each) => `${each}_${i}`)
  const brought = numbered(['limit', 'capacity', ...(headerField('brings') ?? [])])
  return { i, policy, prefix, modules: needed, cells: numbered(cells), brought, slots, valid, take }
}

/**
 * Returns the name of an algorithm's module in lua/: that of the algorithm, or its longest beginning, as `token-bucket` is for
 * `token-bucket-interval`.
 * @throws {Error} if there is none.
 */
function moduleOf(algorithm: string): string {
  const module = Object.keys(modules)
    .filter((file) => algorithm === file || algorithm.startsWith(`${file}-`))
    .toSorted((a, b) => a.length - b.length)
    .at(-1)
  if (!module) throw new Error(`algorithm '${algorithm}' has no module in lua/`)
  return module
}

/** Finds the function `<prefix>_take` in a text of Lua: its parameters, its body without the last statement, and the results. */
function takeIn(text: string, prefix: string): RegExpExecArray | null {
  return new RegExp(`local function ${prefix}_take\\(([^)]*)\\)\n([^]*?)\nreturn ([^]*?)\nend\n`).exec(text)
}

/**
 * Returns how many slots an algorithm keeps for each key: numbers known by position, such as one for each part of a window.
 * `written` is what the header of its Lua module says of them. It is `buckets + n`, where `buckets` is the policy's own
 * number, or `cap` for a ring, whose slots grow with use. The result is then 'ring'; undefined if it keeps none.
 * @throws {Error} for any other text.
 */
function slotsOf(written: string | undefined, { buckets }: Policy): number | 'ring' | undefined {
  if (written === undefined) return undefined
  if (written === 'cap') return 'ring'
  const [, more] = /^buckets \+ (\d+)$/.exec(written) ?? []
  if (more === undefined) throw new Error(`lua/ has the unknown number of slots '${written}'`)
  return buckets + Number(more)
}

/**
 * Returns a condition of an algorithm's Lua module, by which scripts detect state that no call can have written, as it stands in
 * a script. There each cell (a number kept for a key, by name) has the policy's number `i` behind its name, because several
 * policies may have cells of one name. The policy's window, tick and buckets become numbers.
 * @throws {Error} for any other word.
 */
function inScript(condition: string, cells: readonly string[], policy: Policy, i: number): string {
  const { window, tick, buckets } = policy
  const words: Record<string, string> = { window: `${window}`, tick: `${tick}`, buckets: `${buckets}` }
  for (const cell of cells) words[cell] = `${cell}_${i}`
  for (const lua of ['latest', 'expires', 'and', 'or', 'not']) words[lua] = lua
  return condition.replace(/\b[a-z]\w*/g, (word) => known(words, word, 'word'))
}

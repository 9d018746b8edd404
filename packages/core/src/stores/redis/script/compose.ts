import type { Policy } from '../../../algorithms/contract/policy.js'
import { MOST_ENTRIES } from '../../../algorithms/contract/state.js'
import type { Penalty } from '../../penalty.js'
import { REASONS } from '../../store.js'
import { modules } from './modules.gen.js'
import { withOperators } from './operators.js'
import { describePolicy, placeSlots, type ScriptPolicy, type SlotOffsets, wordsOf } from './policy-words.js'
import { expand, fill, known, withConstants, type Words } from './template.js'
import { OPERATIONS } from './wire.js'

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

/**
 * The script for lists of these shapes, with a penalty or without. Lists that differ in limits and capacities alone have the
 * same one.
 * @throws {Error} where a text of lua/ uses an unknown word, directive, list, constant or module.
 */
export function composeScript(policies: readonly Policy[], penalty?: Penalty): string {
  const all = policies.map(describePolicy)
  const version = HEADER_BYTES + 8 * all.flatMap(({ cells }) => cells).length
  const places = placeSlots(all, version + 8)
  const [before, after] = expand(outline(all, penalty), listsOf(all, places, penalty)).split('@{modules}')
  if (after === undefined) throw new Error('lua/script.lua has no place for modules')
  const needed = [...new Set(all.flatMap((part) => part.modules))].map((name) =>
    known(modules, name, 'module'),
  )
  const script = fill(`${before}${withoutUnused(needed, after)}`, {
    ...wordsOfList(all, places, version),
    ...wordsOfPenalty(penalty),
  })
  return withOperators(withConstants(script, CONSTANTS))
}

/** script.lua with the other texts of the engine in their places. */
function outline(all: readonly ScriptPolicy[], penalty: Penalty | undefined): string {
  const isFew = all.length <= FEW_POLICIES
  const {
    script,
    engine,
    argument,
    alone,
    hot,
    penalty: penalize,
  } = modules as Readonly<Record<Text, string>>
  const isPlain = all.every(({ take }) => take)
  const decision = isFew ? engine : 'return decide(@{call})'
  const texts: Words = {
    engine,
    argument,
    hot_alone: isPlain ? linesFor('alone', hot) : '',
    hot_together: isPlain ? linesFor('together', hot) : '',
    penalty: penalty ? penalize : '',
    alone_first: isFew ? alone : '',
    alone_last: isFew ? '' : alone,
    decision,
  }
  const inPlace = (text: string): string =>
    text.replace(/@\{(\w+)\}/g, (written, word: string) =>
      Object.hasOwn(texts, word) ? inPlace(texts[word]!) : written,
    )
  return inPlace(script)
}

/** The text with the lines for one way of travelling, and without those for the other. */
function linesFor(way: 'alone' | 'together', text: string): string {
  return text.replace(/^( *)--@(alone|together) (.*)$/gm, (_, indent: string, of: string, line: string) =>
    of === way ? indent + line : '',
  )
}

type Text = 'script' | 'engine' | 'argument' | 'alone' | 'hot' | 'penalty'

function listsOf(all: readonly ScriptPolicy[], { bases }: SlotOffsets, penalty: Penalty | undefined) {
  const list = (holds: (part: ScriptPolicy) => boolean): readonly Words[] =>
    all.filter(holds).map((part) => wordsOf(part, bases[part.i]))
  return {
    policy: list(() => true),
    ring: list(({ slots }) => slots === 'ring'),
    bucketed: list(({ slots }) => typeof slots === 'number'),
    slotted: list(({ slots }) => slots !== undefined),
    penalty: penalty ? [{}] : [],
  }
}

/** The words that stand for the list as a whole. */
function wordsOfList(all: readonly ScriptPolicy[], { end }: SlotOffsets, version: number): Words {
  const cells = all.flatMap((part) => part.cells)
  const numbers = all.map(({ i }) => `limit_${i}, capacity_${i}`).join(', ')
  const rings = all.filter(({ slots }) => slots === 'ring')
  const hasRings = rings.length > 0
  const load = hasRings ? `redis.pcall('GETRANGE', key, '0', '${end - 1}')` : "redis.pcall('GET', key) or ''"
  const parts = all.map(({ i }) => ` .. pack('<ddd', earliest_${i}, remaining_${i}, reset_${i})`)
  return {
    plain_bytes: `${16 * (1 + all.length)}`,
    call: `cost, nonce, op, count, clock, span, rest, ${numbers}`,
    all_numbers: numbers,
    number_formats: 'dd'.repeat(all.length),
    all_slowest: all.map(({ i }) => `slowest_${i}`).join(', '),
    slowest_formats: 'd'.repeat(all.length),
    all_cells: cells.join(', '),
    cell_formats: 'd'.repeat(cells.length),
    cell_bytes: `${8 * cells.length}`,
    zeros: cells.map(() => '0').join(', '),
    hot_bytes: `${HOT}`,
    hottest: `${HOTTEST}`,
    version: `${version}`,
    slots: `${version + 8}`,
    fixed: `${end}`,
    together: all.some(({ slots }) => slots !== undefined) ? '1' : 'HUGE',
    length: [end, ...rings.map(({ i }) => `8 * cap_${i}`)].join(' + '),
    has_rings: `${hasRings}`,
    load,
    load_all: hasRings ? 'nil' : "call('MGET', (table.unpack or _G.unpack)(KEYS))",
    load_one: hasRings ? load : "states[i] or ''",
    longest: `${Math.max(...all.map(({ policy }) => policy.window))}`,
    view: all.map(({ i }) => `remaining_${i}, reset_${i}`).join(', '),
    view_formats: 'dd'.repeat(all.length),
    view_numbers: `${2 * all.length}`,
    kept_view: all.map(({ i }) => `numbers[kept + ${2 * i - 1}], numbers[kept + ${2 * i}]`).join(', '),
    parts: all.length === 1 ? '' : parts.join(''),
  }
}

/** The numbers of a penalty are literals, so scripts without one are as they would be if there were none. */
function wordsOfPenalty(penalty: Penalty | undefined): Words {
  const written = { others_alike: 'reason ~= 0', barred_written: 'ttl' }
  if (!penalty) return written
  const numbers = Object.entries(penalty).map(([name, number]) => [name, `${number}`] as const)
  return {
    ...Object.fromEntries(numbers),
    others_alike: 'reason ~= 0 and reason ~= LIMIT',
    barred_written: 'ttl or refusals',
  }
}

const CONSTANTS: Words = {
  ...numbered(Object.entries(OPERATIONS)),
  ...numbered(REASONS.flatMap((reason, i) => (reason ? [[reason, i] as const] : []))),
  HUGE: '1e309',
  /** Whole numbers up to here are exact. */
  EXACT: '9007199254740992',
  /** 2^50 microseconds: no instant is booked, held or blocked further ahead; state that says so is broken. */
  FAR: '1125899906842624',
  /** No key expires later, as Redis takes no longer time to live. */
  NEVER: '1e21',
  MOST_ENTRIES: `${MOST_ENTRIES}`,
}

function numbered(names: readonly (readonly [string, number])[]): Words {
  return Object.fromEntries(names.map(([name, number]) => [name.toUpperCase(), `${number}`]))
}

/** Puts modules before what uses them. Functions that nothing calls are left out: each costs every call some time. */
function withoutUnused(texts: readonly string[], rest: string): string {
  const pieces = texts.flatMap((text) => `${text}\n`.split(/^(?=local function )/m))
  return pieces.reduceRight((script, piece) => {
    const name = /^local function (\w+)/.exec(piece)?.[1]
    return !name || new RegExp(`\\b${name}\\b`).test(script) ? piece + script : script
  }, rest)
}

import type { Policy } from '../../../algorithms/contract/policy.js'
import { MOST_ENTRIES } from '../../../algorithms/contract/state.js'
import type { Penalty } from '../../penalty.js'
import { KNOWN } from '../../reservations.js'
import { REASONS } from '../../store.js'
import { MOST_PARTS } from '../../together.js'
import { describePolicy, type ScriptPolicy, textOf } from './policy-module.js'
import { expand, fill, withConstants, withOperators, type Words } from './template.js'
import { OPERATIONS } from './wire.js'

/*
 * A script for each list of shapes: the engine with the modules that the list needs, lines repeated for each policy
 * and state in plain locals. In Redis this takes about half of what tables and closures take. Limits and capacities
 * are arguments; everything else about a shape is a literal.
 */

/** Bytes of the state before the cells: four instants of 8 bytes each, born, expires, restricted and written. */
const HEADER_BYTES = 32
const EXPIRES_OFFSET = 8
const WRITTEN_OFFSET = 24

/**
 * The cells of a limiter that reserves, behind those of its policies: bytes of the list of reservations, how many of these are open,
 * an instant before which none of them ends, when the list began, and the latest end of one that was settled, and of one that has ended
 * unsettled, whose marks are gone.
 */
const LIST_CELLS = ['listed', 'reserved', 'next_end', 'listed_since', 'settled_until', 'unsettled_until']

/**
 * Under more policies than this a key that comes alone is decided in a function as well: the variables of the engine and
 * the functions of the modules would be more than the 200 that Lua allows in one place.
 */
const FEW_POLICIES = 5

/**
 * Composes the script that decides calls on single keys under policies of these shapes, with a penalty or without. Limits and
 * capacities are arguments, so lists that differ in nothing else have the same script.
 * @throws {Error} where a text of lua/ uses an unknown word, directive, list, constant or module.
 */
export function composeScript(policies: readonly Policy[], penalty?: Penalty, reserves = false): string {
  return compose('script', { policies, penalty, reserves })
}

/**
 * Composes the script for calls on several keys. Each part of a call, one key, has one of these lists of policies, which are numbered
 * from 1. For each list the script has short code for plain calls, which fit now and need nothing special, and the engine for all
 * others.
 * @throws {Error} as `composeScript`.
 */
export function composeTogether(lists: readonly ScriptList[]): string {
  const ring = lists.filter(hasRing).map(() => ({}))
  const hasRings = ring.length > 0
  const isPartial = hasRings || lists.some(({ reserves }) => reserves)
  const plain = lists.map((list, i) => plainPartOf(list, i + 1, isPartial, hasRings))
  const engines = lists.map((list, i) => compose('list', list, { number: `${i + 1}` }))
  const sizes = lists.map(({ policies }) => countOfPlainNumbers(policies))
  // Of a part: its list, its plain call, whether it is enforced, its smallest limits. Before all parts are three numbers at most.
  const numbersOfPart = Math.max(...lists.map(({ policies }, i) => 2 + sizes[i]! + policies.length))
  return fill(withConstants(expand(textOf('together'), { ring }), CONSTANTS), {
    states: isPartial ? 'nil' : ALL_STATES,
    formats: 'd'.repeat(3 + MOST_PARTS * numbersOfPart),
    stride: hasRings ? '5' : '2',
    policies: lists.map(({ policies }) => policies.length).join(', '),
    sizes: sizes.join(', '),
    penalties: lists.map(({ penalty }) => `${penalty !== undefined}`).join(', '),
    plain: byList(plain),
    engine: byList(engines),
    failure: textOf('failure'),
  })
}

/** Whether a policy of the list is a sliding log, whose state grows. */
function hasRing({ policies }: ScriptList): boolean {
  return policies.some(({ algorithm }) => algorithm.ring)
}

/**
 * Composes the code for a plain call that is a part of one on several keys, under the list with this number. `isPartial`: calls read
 * only a part of some states. `hasRings`: some list of the script has a ring.
 */
function plainPartOf(list: ScriptList, number: number, isPartial: boolean, hasRings: boolean): string {
  const size = countOfPlainNumbers(list.policies)
  const given = Array.from({ length: size }, (_, nth) => `given[at + ${nth + 1}]`).join(', ')
  const held = isPartial ? 'nil' : "not (stale and stale[key]) and (states[next_key + part] or '')"
  const no_ring = hasRings && !hasRing(list) ? 'slot = nil' : ''
  return compose('part', list, { number: `${number}`, given, size: `${1 + size}`, held, no_ring })
}

/** Returns Lua that carries out the i-th of these texts for a part whose list of policies has the number i, from 1. */
function byList(texts: readonly string[]): string {
  const branches = texts.map((text, i) => `if list == ${i + 1} then\n${text}`)
  return `${branches.join('\nelse')}\nend`
}

/** A list of policies, with the penalty under which a script enforces it. */
export interface ScriptList {
  readonly policies: readonly Policy[]
  readonly penalty?: Penalty | undefined
  readonly reserves?: boolean
}

/** The texts that are composed for one list of policies: a script, or what one for several keys has of a list or of a part. */
type Text = 'script' | 'list' | 'part'

/**
 * Composes a text of lua/ for one list of policies: repeats lines for each policy, puts the modules of the algorithms in their
 * place and fills in the words `@{...}`, to which `own` adds those that only the caller knows. In the bytes of a key's state,
 * `version` is the place of the random number by which a booking sees whether the state was changed after it. Behind that lie the
 * slots, as far as their number is fixed, up to the byte `end`.
 */
function compose(text: Text, { policies, penalty, reserves = false }: ScriptList, own: Words = {}): string {
  const all = policies.map(describePolicy)
  const listCells = reserves ? LIST_CELLS : []
  const version = HEADER_BYTES + 8 * (all.flatMap(({ cells }) => cells).length + listCells.length)
  const { bases, end } = placeSlots(all, version + 8)
  const [before, after = ''] = expand(
    outline(text, all, penalty, reserves),
    listsOf(all, bases, penalty, reserves),
  ).split('@{modules}')
  if (!after && text !== 'part') throw new Error(`lua/${text}.lua has no place for modules`)
  const needed = [...new Set(all.flatMap((part) => part.modules))].map(textOf)
  const words = { ...wordsOfList(all, end, version, listCells), ...wordsOfPenalty(penalty), ...own }
  const script = fill(`${before}${after && withoutUnused(needed, after)}`, words)
  return withOperators(withConstants(script, CONSTANTS))
}

/**
 * Returns a text of lua/ with the other texts in their places, before any word is filled in. lua/hot.lua decides plain calls,
 * which fit now and need nothing special, faster than the engine. It is left out if an algorithm has no `take`, its function for
 * such calls, and in calls on several keys also if two policies are logs, as it writes into the ring of one alone. With more than
 * a few policies the engine goes into a function, because Lua allows 200 variables in one place; a limiter that reserves has more
 * of them.
 */
function outline(
  text: Text,
  all: readonly ScriptPolicy[],
  penalty: Penalty | undefined,
  reserves: boolean,
): string {
  const isFew = all.length <= (reserves ? FEW_POLICIES - 2 : FEW_POLICIES)
  const logs = all.filter(({ slots }) => slots === 'ring')
  const isPlain = all.every(({ take }) => take) && (text === 'script' || logs.length < 2)
  const hot = withReservingLines(textOf('hot'), reserves)
  const texts: Words = {
    engine: withReservingLines(textOf('engine'), reserves),
    ended: textOf('ended'),
    change: textOf('change'),
    holding: textOf('holding'),
    put_back: textOf('put-back'),
    argument: textOf('argument'),
    failure: textOf('failure'),
    discard: reserves ? DISCARD_IN_PLACE_OF_COPY : DISCARD,
    hot_alone: isPlain ? linesFor('alone', hot) : '',
    hot_together: isPlain ? linesFor('together', hot) : '',
    hot_several: isPlain ? linesFor('several', hot) : '',
    penalty: penalty ? textOf('penalty') : '',
    alone_first: isFew ? textOf('alone') : '',
    alone_last: isFew ? '' : textOf('alone'),
    part_function: isFew ? '' : 'local function decide(@{call})\n@{engine}\nend',
    decision: isFew ? '@{engine}' : 'return decide(@{call})',
  }
  /** Returns a text with `texts` in their places, `@{name}`, and in these those that they name. Other words stay for later. */
  const withTexts = (outer: string): string =>
    outer.replace(/@\{(\w+)\}/g, (written, word: string) =>
      Object.hasOwn(texts, word) ? withTexts(texts[word]!) : written,
    )
  return withTexts(withReservingLines(textOf(text), reserves))
}

/** Returns the text with the lines that are marked `--@reserving` for a limiter that reserves, and without them for any other. */
function withReservingLines(text: string, reserves: boolean): string {
  return text.replace(/^--@reserving (.*\n)/gm, reserves ? '$1' : '')
}

/** Returns how many numbers the argument of a plain call has: cost and nonce, then those that it brings for each policy. */
function countOfPlainNumbers(policies: readonly Policy[]): number {
  return 2 + policies.flatMap((policy, i) => describePolicy(policy, i).brought).length
}

/**
 * Returns the text with the lines that are marked `--@way` for this way of a call to the script, and without those for the other
 * ways: alone, together with calls on other keys, or as a part of a call on several keys.
 */
function linesFor(way: 'alone' | 'together' | 'several', text: string): string {
  return text.replace(
    /^( *)--@(alone|together|several) (.*)$/gm,
    (_, indent: string, of: string, line: string) => (of === way ? indent + line : ''),
  )
}

/**
 * Deletes a key, in a script that goes on to write; a peek deletes nothing. The `SET` before it is for a server without memory: it
 * refuses a script at its first write, and would not refuse `DEL`.
 */
const DISCARD = "if op ~= PEEK then call('SET', key, '') call('DEL', key) end"
/** The same in a limiter that reserves, whose `call` may have changed a copy of the state so far: from here on it is Redis's own. */
const DISCARD_IN_PLACE_OF_COPY = DISCARD.replace('then', 'then call, copy = redis.call, nil')

/** The states of all keys that hold a string. */
const ALL_STATES = "call('MGET', spread(KEYS))"

/**
 * Returns the lists over which `--@for` repeats a line, by name: the policies for which the line is repeated, each as its words.
 * `bucketed` policies keep a fixed number of slots for a key, those with a `ring` a number that grows. A list such as `penalty` has
 * one member or none, so that the line is kept once or dropped.
 */
function listsOf(
  all: readonly ScriptPolicy[],
  bases: readonly string[],
  penalty: Penalty | undefined,
  reserves: boolean,
) {
  const list = (holds: (part: ScriptPolicy) => boolean): readonly Words[] =>
    all.filter(holds).map((part) => wordsOf(part, bases[part.i]))
  const isFresh = penalty?.then === 'fresh'
  return {
    policy: list(() => true),
    ring: list(({ slots }) => slots === 'ring'),
    // Of these states a call reads the fixed part alone.
    partial: reserves ? [{}] : list(({ slots }) => slots === 'ring'),
    bucketed: list(({ slots }) => typeof slots === 'number'),
    slotted: list(({ slots }) => slots !== undefined),
    drained: list(({ cells, i }) => cells.includes(`fastest_${i}`)),
    calendar: list(({ policy }) => policy.calendar !== undefined),
    beside_calendar: list(({ policy }) => !policy.calendar && all.some((other) => other.policy.calendar)),
    penalty: penalty ? [{}] : [],
    fresh: isFresh ? [{}] : [],
    fresh_policy: list(() => isFresh),
    fresh_slots: list(({ slots }) => isFresh && slots !== undefined),
  }
}

/**
 * Returns the words of a script that stand for all of its policies together: by the name of each `@{name}` in lua/ the Lua text that
 * replaces it, such as a list of variables, a format of `struct` (`d` is a number of 8 bytes), a condition or a count of bytes.
 */
function wordsOfList(
  all: readonly ScriptPolicy[],
  end: number,
  version: number,
  listCells: readonly string[],
): Words {
  return {
    ...wordsOfArgument(all, listCells.length > 0),
    ...wordsOfState(all, end, version, listCells),
    ...wordsOfAnswer(all),
  }
}

/** Returns the words for the argument of a call. A plain one brings only two numbers and those of the policies, and is known by that. */
function wordsOfArgument(all: readonly ScriptPolicy[], reserves: boolean): Words {
  const numbers = all.flatMap(({ brought }) => brought)
  const plainBytes = 8 * (2 + numbers.length)
  const isPlain = `#argument==${plainBytes}`
  const numberAt = (i: number): string => `unpack('<d',argument,${plainBytes + 8 * i + 1})`
  const isReserve = `#argument==${plainBytes + 64} and ${numberAt(0)}==RESERVE and ${numberAt(2)}<0`
  const mayBePlain = 'op==CONSUME and #argument<rest'
  return {
    plain_bytes: `${plainBytes}`,
    call: `cost, nonce, op, count, clock, span, rest, ${numbers.join(', ')}`,
    all_numbers: numbers.join(', '),
    number_formats: 'd'.repeat(numbers.length),
    all_slowest: all.map(({ i }) => `slowest_${i}`).join(', '),
    slowest_formats: 'd'.repeat(all.length),
    together: all.some(({ slots }) => slots !== undefined) ? '1' : 'HUGE',
    is_plain: reserves ? `(${isPlain} or ${isReserve})` : isPlain,
    may_be_plain: reserves ? `(${mayBePlain} or op==RESERVE and #argument<rest+32)` : mayBePlain,
  }
}

/**
 * Returns the words, texts that replace `@{name}` in lua/, which say what bytes the state of a key has. `end` is the byte at which
 * its fixed part ends; behind it grow rings, the entries of sliding logs, and the list of reservations, if `listCells` names its
 * variables, of which the first is its length. `version` is the byte of the random number by which a booking sees whether the state
 * was changed after it.
 */
function wordsOfState(
  all: readonly ScriptPolicy[],
  end: number,
  version: number,
  listCells: readonly string[],
): Words {
  const cells = [...all.flatMap((part) => part.cells), ...listCells]
  const rings = all.filter(({ slots }) => slots === 'ring')
  const reserves = listCells.length > 0
  const listLength = listCells.slice(0, 1)
  const length = [end, ...rings.map(({ i }) => `8 * cap_${i}`), ...listLength].join(' + ')
  // A plain call that reserves has made the list longer by then.
  const lengthBeforeCall = reserves ? 'list_end' : length
  const isReadInParts = rings.length > 0 || reserves
  return {
    all_cells: cells.join(', '),
    cell_formats: 'd'.repeat(cells.length),
    cell_bytes: `${8 * cells.length}`,
    zeros: cells.map(() => '0').join(', '),
    expires_offset: `${EXPIRES_OFFSET}`,
    written_offset: `${WRITTEN_OFFSET}`,
    version: `${version}`,
    slots: `${version + 8}`,
    fixed: `${end}`,
    length,
    has_rings: `${rings.length > 0}`,
    ...(isReadInParts ? wordsOfPart(end, length, lengthBeforeCall) : wordsOfWhole(end)),
    ...wordsOfWindows(all),
  }
}

/**
 * Returns the words that name the longest window and say what happens when the clock was set back, in microseconds: by less than
 * `longest_standstill`, time stands still until the clock has caught up; by `discarded_from` or more, the state is discarded. For a
 * calendar time need not stand still, as the end of its window is in the state: it is kept until the clock is two windows behind.
 */
function wordsOfWindows(all: readonly ScriptPolicy[]): Words {
  const longest = Math.max(...all.map(({ policy }) => policy.window))
  const clocked = all.filter(({ policy }) => !policy.calendar)
  const hasCalendar = clocked.length < all.length
  return {
    longest: `${longest}`,
    longest_standstill: `${Math.max(0, ...clocked.map(({ policy }) => policy.window))}`,
    discarded_from: `${hasCalendar ? 2 * longest : longest}`,
  }
}

/** Returns the words for what the answer to a call says of each policy. */
function wordsOfAnswer(all: readonly ScriptPolicy[]): Words {
  const parts = all.map(({ i }) => ` .. pack('<ddd', earliest_${i}, remaining_${i}, reset_${i})`)
  return {
    view: all.map(({ i }) => `remaining_${i}, reset_${i}`).join(', '),
    view_formats: 'dd'.repeat(all.length),
    view_numbers: `${2 * all.length}`,
    kept_view: all.map(({ i }) => `numbers[kept + ${2 * i - 1}], numbers[kept + ${2 * i}]`).join(', '),
    parts: all.length === 1 ? '' : parts.join(''),
    zero_units: all.map(() => '0').join(', '),
  }
}

/**
 * Returns the words of states that are read as a whole. `end` is the byte at which their fixed part ends. Behind it may lie a header
 * of 32 bytes and the 16 of a penalty, `behind`. Such a state has the same length when it is written.
 */
function wordsOfWhole(end: number): Words {
  return {
    load: "try('GET', key) or ''",
    load_all: ALL_STATES,
    load_one: "states[i] or ''",
    behind: `#fixed > ${end} and string.sub(fixed, ${end + 1}) or ''`,
    is_sized: `(#fixed == ${end} + header or #fixed == ${end + 16} + header)`,
    is_size: 'size == #fixed',
  }
}

/**
 * Returns the words of states of which a call reads the fixed part alone, up to the byte `end`, as rings or reservations lie behind
 * it. `length` is Lua for the length with these, but without what lies behind them; `lengthBeforeCall` is that before a plain call has
 * written.
 */
function wordsOfPart(end: number, length: string, lengthBeforeCall: string): Words {
  const load = `try('GETRANGE', key, '0', '${end - 1}')`
  return {
    load,
    load_all: '{}',
    load_one: load,
    behind: `more > 0 and call('GETRANGE', key, ${length}, ${length} + 48) or ''`,
    is_sized: 'true',
    is_size: `(size == ${lengthBeforeCall} + header or size == ${lengthBeforeCall} + header + 16)`,
  }
}

/**
 * Returns the words of a penalty, which blocks a key that is refused too often. Its numbers are literals in the script, so a
 * script without a penalty has no code for one. `rest_is_denied` says when the script need not decide the rest of several equal
 * calls: from the first denial on, but under a penalty only from one on that is not counted as a refusal.
 */
function wordsOfPenalty(penalty: Penalty | undefined): Words {
  if (!penalty) return { rest_is_denied: 'reason ~= 0' }
  return {
    ...Object.fromEntries(Object.entries(penalty).map(([name, number]) => [name, `${number}`])),
    rest_is_denied: 'reason ~= 0 and reason ~= LIMIT',
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
  /** The places of lua/gcra-slots.lua, of which the last is that of the first slot. */
  ...numbered(['begun', 'before', 'newest', 'first_slot'].map((name, place) => [name, place] as const)),
  KNOWN: `${KNOWN}`,
}

/** Returns constants for Lua: the names in capitals, with their numbers as text. */
function numbered(names: readonly (readonly [string, number])[]): Words {
  return Object.fromEntries(names.map(([name, number]) => [name.toUpperCase(), `${number}`]))
}

/**
 * Returns the modules and behind them `rest`, the text that uses them, without the functions that nothing calls: each costs every
 * call some time. It goes from the last function to the first, as each may only call those before it.
 */
function withoutUnused(modules: readonly string[], rest: string): string {
  const pieces = modules.flatMap((module) => `${module}\n`.split(/^(?=local function )/m))
  let script = rest
  for (const piece of pieces.toReversed()) {
    const name = /^local function (\w+)/.exec(piece)?.[1]
    if (!name || new RegExp(`\\b${name}\\b`).test(script)) script = piece + script
  }
  return script
}

/**
 * Returns the byte at which the slots of each policy begin in the state, as Lua, by the policy's number. Slots of a fixed number
 * come first, from the byte `start` to `end`; then rings, which grow, so that the place of each depends on those before it.
 */
function placeSlots(all: readonly ScriptPolicy[], start: number) {
  const bases: string[] = []
  let end = start
  for (const { i, slots } of all) {
    if (typeof slots !== 'number') continue
    bases[i] = `${end}`
    end += 8 * slots
  }
  let base = `${end}`
  for (const { i, slots } of all) {
    if (slots !== 'ring') continue
    bases[i] = base
    base += ` + 8 * cap_${i}`
  }
  return { bases, end }
}

/**
 * Returns the words `@{...}` of one policy, for a line that is repeated for each: its cells and numbers, whose names end with its
 * number in the list, half of the shortest period of its calendar, the condition under which its cells are sound, and the body of
 * its `take`.
 */
function wordsOf(part: ScriptPolicy, base: string | undefined): Words {
  const { i, policy, cells } = part
  const { calendar, window, windowTicks, tick, buckets } = policy
  const own = calendar ? [calendar.shortest, ...part.brought.slice(2)] : []
  const shape = [`capacity_${i}`, window, windowTicks, tick, buckets, ...own].join(', ')
  const numbers = `limit_${i}, ${shape}`
  const state = base === undefined ? cells : [...cells, base]
  const isWhole = cells.map((cell) => `${cell} >= 0 and ${cell} <= EXACT and ${cell} % 1 == 0`)
  return {
    i: `${i}`,
    algorithm: part.prefix,
    cells: cells.join(', '),
    state: state.join(', '),
    numbers,
    half: `${(calendar?.shortest ?? 0) / 2}`,
    slowest: `slowest_${i}, ${shape}`,
    cleared: cells.map((cell) => (cell === `cap_${i}` ? cell : '0')).join(', '),
    sane: [...isWhole, ...part.valid].join(' and '),
    take: part.take ? takeInPlace(part, part.take, [...state, ...numbers.split(', ')]) : '',
  }
}

/**
 * Returns the body of an algorithm's Lua function `take`, which decides a plain call, as a block to stand where the call would
 * be. The parameters are replaced by `args`, in brackets where these are expressions, and the results go to the variables of the
 * plain call. A call of a function would cost more than the decision.
 */
function takeInPlace(
  { i, cells, slots }: ScriptPolicy,
  [, params, body, results]: RegExpExecArray,
  args: readonly string[],
): string {
  const names = params!.split(',').map((param) => param.trim())
  /** Puts the argument in place of each parameter; one with a space is an expression, so in brackets it stays a whole. */
  const inPlace = (text: string): string =>
    text.replace(/[a-z_]\w*/g, (word) => {
      const arg = args[names.indexOf(word)]
      return arg === undefined ? word : / /.test(arg) ? `(${arg})` : arg
    })
  const variables = ['passes', ...cells, `remaining_${i}`, `reset_${i}`]
  if (slots !== undefined) variables.push(`slot_${i}`, `bytes_${i}`)
  return `do\n${inPlace(body!)}\n${variables.join(', ')} = ${inPlace(results!)}\nend`
}

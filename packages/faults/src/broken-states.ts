import type { Policy } from '@sluice/core'
import type { Argument } from '@sluice/harness/redis'
import { describePolicy } from '../../core/src/stores/redis/script/policy-module.js'

/** Puts something else in the place of a caller's state, without an expiry. */
export type Make = (key: string) => [command: string, ...Argument[]]

type Broken = readonly [what: string, make: Make, isReadLater?: boolean]

/** States that no call can have written under a limiter of this one policy, made by hand or from a state that is sound. */
export function brokenStates(policy: Policy, state: Buffer): readonly Broken[] {
  return [...OTHER_TYPES, ...texts(state), ...numbers(policy, state)]
}

const OTHER_TYPES: readonly (readonly [string, Make])[] = [
  ['a list', (key) => ['RPUSH', key, 'a']],
  ['a hash', (key) => ['HSET', key, 'a', 1]],
  ['a set', (key) => ['SADD', key, 'a']],
  ['a set of numbers', (key) => ['SADD', key, 1, 2, 3]],
  ['a sorted set', (key) => ['ZADD', key, 1, 'a']],
  ['a stream', (key) => ['XADD', key, '*', 'a', 1]],
  ['a place on earth', (key) => ['GEOADD', key, 13.4, 52.5, 'a']],
  ['a HyperLogLog', (key) => ['PFADD', key, 'a']],
  ['a bitmap', (key) => ['SETBIT', key, 1_000_000, 1]],
  ['a counter', (key) => ['INCR', key]],
]

/**
 * Values that may stand in the place of a key's state, each with a name and the command of Redis that puts it there: other
 * texts, and the state cut, lengthened or mixed up.
 */
function texts(state: Buffer): [string, Make][] {
  const values: [string, Buffer | string][] = [
    ['a letter', 'x'],
    ['JSON', '{"tokens":10,"updated":1700000000000}'],
    ['digits of the same length', '7'.repeat(state.length)],
    ['letters of the same length', 'a'.repeat(state.length)],
    ['ones of the same length', Buffer.alloc(state.length, 0xff)],
    ['zeros of another length', Buffer.alloc(state.length - 8)],
    ['the first byte lost', state.subarray(1)],
    ['the last byte lost', state.subarray(0, -1)],
    ['the last number lost', state.subarray(0, -8)],
    ['the header alone', state.subarray(0, 8 * BEFORE.length)],
    ['the first number alone', state.subarray(0, 8)],
    ['a byte more', Buffer.concat([state, Buffer.alloc(1)])],
    ['a number more', Buffer.concat([state, Buffer.alloc(8)])],
    ['a megabyte more', Buffer.concat([state, Buffer.alloc(1 << 20)])],
    ['twice itself', Buffer.concat([state, state])],
    ['bytes of every number turned round', Buffer.from(state).swap64()],
  ]
  return values.map(([what, value]) => [what, (key) => ['SET', key, value]])
}

/** Sound states but for one number, or but for all of their slots. */
function numbers(policy: Policy, state: Buffer): Broken[] {
  const named = [...BEFORE, ...cellsOf(policy), ...BEHIND]
  const cases = named.flatMap(([name, impossible], i) =>
    [...IMPOSSIBLE, ...impossible].map((number): Broken => [
      ...put(`${name} ${number}`, number, i, i + 1),
      READ_LATER.has(name),
    ]),
  )
  const slots = state.length / 8 - named.length
  const inSlots = slots > 0 ? [...IMPOSSIBLE, 0.5] : []
  return [
    ...cases,
    ...inSlots.map((number) => put(`slots ${number}`, number, named.length, state.length / 8)),
  ]

  /** The state with one number in the places from `from` up to `to`, as a broken value of this name. */
  function put(what: string, number: number, from: number, to: number): [string, Make] {
    const value = Buffer.from(state)
    for (let i = from; i < to; i++) value.writeDoubleLE(number, 8 * i)
    return [what, (key) => ['SET', key, value]]
  }
}

const IMPOSSIBLE = [NaN, Infinity, -Infinity, -1, 1e308]

/** Microseconds: the year 2112, beyond anything that can be booked or held. */
const FAR = 2 ** 52

type Numbers = readonly (readonly [string, readonly number[]])[]

/** Numbers of a state as lua/README.md lists them, each with more that it cannot be; those before and behind the cells. */
const BEFORE: Numbers = [
  ['born', [0.5, FAR]],
  ['expires', []],
  ['restricted', [1, FAR]],
  ['written', [0.5]],
]
const BEHIND: Numbers = [['version', []]]

/** Fields that a plain consume does not read while the key is not restricted: found by the first call that does. */
const READ_LATER = new Set(['born', 'version'])

/** What cells cannot be, by their names in lua; cells with other names are whole, as all are. */
const IMPOSSIBLE_CELLS: Readonly<Record<string, readonly number[]>> = {
  head: [0.5],
  size: [0.5, 1000, FAR],
  cap: [0, 0.5, 1000, FAR],
  start: [0.5, FAR, 1],
  count: [0.5],
  newest: [0.5, FAR],
  total: [0.5],
  debt: [0.5, 2 ** 50],
  missing: [0.5, 2 ** 50],
  since: [0.5, FAR],
  fastest: [0, 0.5],
}

/** The cells of an algorithm, as its text in lua names them. */
function cellsOf(policy: Policy): Numbers {
  const names = describePolicy(policy, 0).cells.map((cell) => cell.replace(/_\d+$/, ''))
  return names.map((name) => [name, IMPOSSIBLE_CELLS[name] ?? [0.5]])
}

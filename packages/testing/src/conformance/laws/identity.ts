import { strict as assert } from 'node:assert'
import type { Policy } from '@sluice/core'
import * as fc from 'fast-check'
import { law, type Trial } from '../law.js'
import { options } from '../numbers.js'
import { Caller } from '../session.js'
import type { Shape } from '../shapes.js'
import { starts } from '../traffic.js'

/**
 * Keys that a store may take for each other: by case, accents, width, space or what ends a text, as collations do; by escapes,
 * separators and patterns; by names that objects have; by UTF-8, in which all lone surrogates are one character; or by a length
 * at which columns are cut. Limiters hand on 128 UTF-16 units at most.
 */
const KEYS = [
  ['', ' ', '0', '00', 'a', 'A', 'a ', ' a', 'a\0', 'a\n', 'ab', 'ä', 'Ä', 'a\u0308', 'ａ', 'ß', 'ss', '😀'],
  ['a:b', 'a%3ab', 'a%3Ab', 'a,b', 'a/b', 'a{b}', 'a%7bb%7d', 'a%', 'a_', 'a*', "a'", 'a"', 'a\\', 'a\\\\'],
  ['__proto__', 'constructor', 'null', 'undefined', '\ud800', '\ud801', '\udc00', '\ufffd', '?'],
  ['1', '2'].flatMap((end) => ['k'.repeat(63), 'k'.repeat(127), '€'.repeat(127)].map((text) => text + end)),
].flat()

/** A key under a list of policies of the limiter `name`. */
interface Place {
  readonly name: string
  readonly policies: readonly Policy[]
  readonly key: string
}

/**
 * Declares the law of identity: state belongs to the limiter's name, the policies' shapes in order, and the key. Each of many
 * places that differ in one of them is charged, blocked for a time of its own, and half of them are reset: none may have felt
 * what was done to another.
 */
export function identity(trial: Trial, shapes: readonly Shape[]): void {
  const policy = fc.constantFrom(...shapes).chain((shape) => options(shape).map((own) => shape.factory(own)))
  const drawn = fc.record({ start: starts, policies: fc.tuple(policy, policy) })

  law(trial, 'keeps apart what differs in name, shapes or key', drawn, async (session, { policies }) => {
    const places = placesOf(session.freshKey(), policies)
    const callers = places.map(({ name, policies: list, key }) => {
      return new Caller(session, [session.store.keyspace(name, list, () => {})], key)
    })
    /** Does the same at all places, and asserts that each returns what `expectedOf` makes of its capacity and its number. */
    const doAtEach = async (
      act: (caller: Caller, i: number) => unknown,
      expectedOf: (capacity: number, i: number) => unknown,
    ): Promise<void> => {
      const found = await Promise.all(callers.map(async (caller, i) => act(caller, i)))
      const expected = places.map(({ policies: list }, i) =>
        expectedOf(Math.min(...list.map(({ capacity }) => capacity)), i),
      )
      for (const [i, { name, key }] of places.entries()) {
        const where = `the key ${JSON.stringify(key)} of '${name}', place ${i}, is taken for another`
        assert.deepEqual([found[i], where], [expected[i], where])
      }
    }
    const blockOf = (i: number): number => 1_000_000 * (1 + i)
    const isReset = (i: number): boolean => i % 2 === 1
    const look = async (caller: Caller): Promise<unknown> => {
      const { reason, at, remaining } = await caller.peek(0)
      return [reason, at, remaining]
    }

    await doAtEach(
      async (caller) => (await caller.consume(1)).remaining,
      (capacity) => capacity - 1,
    )
    await doAtEach(
      (caller, i) => caller.block(blockOf(i)),
      () => 0,
    )
    await doAtEach(look, (_, i) => ['blocked', session.now + blockOf(i), 0])
    await doAtEach(
      (caller, i) => (isReset(i) ? caller.reset() : 0),
      () => 0,
    )
    await doAtEach(look, (capacity, i) =>
      isReset(i) ? [undefined, session.now, capacity] : ['blocked', session.now + blockOf(i), 0],
    )
  })
}

/** All keys under one list, and one of them under other lists and other names, of which some may run into the key behind them. */
function placesOf(name: string, [one, other]: readonly [Policy, Policy]): readonly Place[] {
  const shapesOf = (list: readonly Policy[]): string => JSON.stringify(list.map(({ shape }) => shape))
  // One list for each list of shapes: those of two policies may be equal.
  const otherLists = new Map(
    [[other], [one, other], [other, one]].map((policies) => [shapesOf(policies), policies]),
  )
  otherLists.delete(shapesOf([one]))
  return [
    ...KEYS.map((key) => ({ name, policies: [one], key })),
    ...[...otherLists.values()].map((policies) => ({ name, policies, key: 'a' })),
    ...['a', 'A', ' ', ':', '%3a', ','].map((end) => ({ name: name + end, policies: [one], key: 'a' })),
    ...['a', ':a', 'a:'].map((end) => ({ name: name + end, policies: [one], key: 'b' })),
  ]
}

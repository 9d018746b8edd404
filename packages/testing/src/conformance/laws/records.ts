import type { RecordChanges } from '@sluice/core/store'
import { strict as assert } from 'node:assert'
import * as fc from 'fast-check'
import { law, type Trial } from '../law.js'
import { starts } from '../traffic.js'

const MOST = 3

/** Each a write of one of five ids, of which three make a full group; without a text the record is removed. */
const writes = fc.array(
  fc.record({
    place: fc.integer({ min: 0, max: 4 }),
    text: fc.oneof(
      { weight: 3, arbitrary: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }) },
      fc.constant(''),
    ),
    life: fc.integer({ min: 1, max: 1_000_000 }),
    isDated: fc.boolean(),
    pause: fc.constantFrom(0, 1, 500_000),
    isRead: fc.boolean(),
  }),
  { maxLength: 12, size: 'max' },
)

/** A version that is older than all writes, and one that no write has, to a reader of which all records are told. */
const [BEFORE_ALL, NO_VERSION] = [0, 2 ** 52]

interface Kept {
  readonly text: string
  readonly until: number
  readonly version: number
}

/**
 * Declares the laws of records: a write replaces the record of its id or removes it, whichever the store was told last; a reader
 * who names the version that he knows gets what has changed since, one who names none or another gets all; a group has no more
 * than `most` records, once those that have ended were reported, also of writes at once. `kept` is what the store should hold. A store
 * without records passes.
 */
export function records(trial: Trial): void {
  readersKnowTheLastRecords(trial)
  aReaderOfAnOldVersionGetsTheLatestTexts(trial)
  writesAtOnceDoNotOverfillAGroup(trial)
  aRecordHasRoomForTheLongestKey(trial)
  aRecordHasTheInstantWhenItLastApplied(trial)
  aReaderOfATooOldVersionGetsAllRecords(trial)
}

/**
 * A law: after drawn writes and removals, a reader who learns of the changes knows the last record of each id, and so does one
 * who reads all.
 */
function readersKnowTheLastRecords(trial: Trial): void {
  const drawn = fc.record({ start: starts, writes })
  law(trial, 'are those that were written last, and say what has changed', drawn, async (session, value) => {
    const [table, group] = [session.store.records?.(), session.freshKey()]
    if (!table) return // optional, and no part of any other promise
    const kept = new Map<string, Kept>()
    const known = new Map<string, Kept>()
    /** Notes in `known` what a reader knows once he has these changes. An empty text is a removal. */
    const learn = ({ areAll, records: changed }: RecordChanges): void => {
      if (areAll) known.clear()
      for (const { id, text, until, version } of changed) {
        if (!id.startsWith(`${group}\n`)) continue
        if (text === '') known.delete(id)
        else known.set(id, { text, until, version })
      }
    }
    /** Asserts that the reader knows each kept record, and besides only such as have ended. */
    const expectAllKnown = (): void => {
      for (const [each, record] of kept) assert.deepEqual(known.get(each), record)
      for (const [each, { until }] of known) assert(kept.has(each) || until <= session.now)
    }
    let latest = await table.read(BEFORE_ALL, [])
    for (const { place, text, life, isDated, pause, isRead } of value.writes) {
      session.now += pause
      const id = `${group}\n"é\\ud800${place}"`
      const ended = [...kept].filter(([, { until }]) => until <= session.now).map(([other]) => other)
      if (ended.length > 0) await table.read(latest.version, ended)
      for (const other of ended) kept.delete(other)
      const ends = { until: isDated ? session.now + life : 0, life: isDated ? 0 : life }
      const written = await table.write({ id, text, ...ends, most: MOST }, latest.version)
      const isTooMany = text !== '' && kept.size >= MOST && !kept.has(id)
      if (isTooMany) {
        assert.equal(written, undefined)
        continue
      }
      assert(written && written.version >= latest.version && written.now === session.now)
      if (text === '') kept.delete(id)
      else kept.set(id, { text, until: session.now + life, version: written.written! })
      if (!isRead) continue
      // What a write returns is what a reader learns who knew the same.
      learn(await table.read(latest.version, []))
      latest = written
      expectAllKnown()
    }
    learn(await table.read(NO_VERSION, []))
    expectAllKnown()
  })
}

/**
 * A law: a reader of records (what operators have set for single keys) who names a version that was written over since is told the
 * latest text of each record.
 */
function aReaderOfAnOldVersionGetsTheLatestTexts(trial: Trial): void {
  const once = fc.record({ start: starts })
  law(trial, 'are told whole to one who knows a version that was written over', once, async (session) => {
    const [table, group] = [session.store.records?.(), session.freshKey()]
    if (!table) return
    const write = async (name: string, text: string) =>
      table.write({ id: `${group}\n${name}`, text, until: 0, life: 1_000_000, most: MOST }, BEFORE_ALL)
    await write('other', 'first')
    const known = await write('again', 'first')
    for (const text of ['second', 'third']) await write('again', text)
    await write('other', 'second')
    const { records: told } = await table.read(known!.version, [])
    const last = new Map(told.map(({ id, text }) => [id, text]))
    assert.deepEqual([last.get(`${group}\nagain`), last.get(`${group}\nother`)], ['third', 'second'])
  })
}

/**
 * A law: of writes of records (what operators have set for single keys) that come at once, no more are kept than one group may have, and
 * each kept one returns a version of its own. A group is all records of one kind of a limiter.
 */
function writesAtOnceDoNotOverfillAGroup(trial: Trial): void {
  const once = fc.record({ start: starts })
  law(
    trial,
    'are no more than the most of a group, of those that are written at once',
    once,
    async (session) => {
      const [table, group] = [session.store.records?.(), session.freshKey()]
      if (!table) return
      const write = async (place: number) =>
        table.write(
          { id: `${group}\n${place}`, text: 'text', until: 0, life: 1_000_000, most: MOST },
          BEFORE_ALL,
        )
      const written = await Promise.all(Array.from({ length: 3 * MOST }, (_, place) => write(place)))
      const { records: all } = await table.read(BEFORE_ALL, [])
      const versions = all.filter(({ id }) => id.startsWith(`${group}\n`)).map(({ version }) => version)
      assert.equal(versions.length, MOST)
      const own = written.flatMap((each) => each?.written ?? [])
      assert.deepEqual(new Set(own), new Set(versions)) // each its own version, and not the latest
    },
  )
}

/**
 * A law: a record (what an operator has set for one key) with the longest key, reason and name of the operator comes back unchanged,
 * whatever characters they have.
 */
function aRecordHasRoomForTheLongestKey(trial: Trial): void {
  const once = fc.record({ start: starts })
  law(trial, 'have room for the longest key, whatever is in it', once, async (session) => {
    const [table, group] = [session.store.records?.(), session.freshKey()]
    if (!table) return
    const words = { reason: '\u0001'.repeat(200), by: '\u{1f600}'.repeat(100) }
    for (const unit of ['"', '\u0001', '\ud800', '\u044f', '\\']) {
      const text = JSON.stringify({ key: `${unit.repeat(8191)}\u044f`, ...words })
      const id = `${group}\n${JSON.stringify(unit)}`
      const written = await table.write({ id, text, until: 0, life: 1_000_000, most: 10 }, BEFORE_ALL)
      assert(written)
      const { records: all } = await table.read(BEFORE_ALL, [])
      assert.equal(all.find((each) => each.id === id)?.text, text)
    }
  })
}

/**
 * A law: a record (what an operator has set for one key) that a reader reports as applied, which means that it has decided a call, has
 * the instant of that report; another record has 0.
 */
function aRecordHasTheInstantWhenItLastApplied(trial: Trial): void {
  const once = fc.record({ start: starts })
  law(trial, 'say when they have last decided a call', once, async (session) => {
    const [table, group] = [session.store.records?.(), session.freshKey()]
    if (!table) return
    const ids = ['one', 'two'].map((name) => `${group}\n"${name}"`)
    for (const id of ids)
      await table.write({ id, text: 'text', until: 0, life: 2_000_000, most: MOST }, BEFORE_ALL)
    session.now += 1_000_000
    const { version } = await table.read(BEFORE_ALL, [ids[0]!, `${group}\n"none"`])
    const all = await table.read(BEFORE_ALL, [])
    const found = new Map(all.records.map(({ id, appliedAt }) => [id, appliedAt]))
    assert.deepEqual(
      [ids[0]!, ids[1]!, `${group}\n"none"`].map((id) => found.get(id)),
      [session.now, 0, undefined],
    )
    assert.equal(all.version, version)
  })
}

/**
 * A law: a reader of records (what operators have set for single keys) gets the changes since the version that he names, also a removal,
 * even of a record that was not there; all records if no write has that version, or it is too old.
 */
function aReaderOfATooOldVersionGetsAllRecords(trial: Trial): void {
  const once = fc.record({ start: starts })
  law(trial, 'are all read by one who knows too old a version', once, async (session) => {
    const [table, group] = [session.store.records?.(), session.freshKey()]
    if (!table) return
    const write = (name: string, text: string) =>
      table.write({ id: `${group}\n"${name}"`, text, until: 0, life: 2_000_000, most: MOST }, BEFORE_ALL)
    await write('gone', 'text')
    const known = await write('kept', 'text')
    await write('gone', '')
    await write('none', '')
    const { areAll, records: changed } = await table.read(known!.version, [])
    assert.deepEqual([areAll, changed.map(({ text }) => text)], [false, ['', '']])
    assert.equal((await table.read(NO_VERSION, [])).areAll, true)
  })
}

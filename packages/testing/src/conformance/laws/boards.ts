import { strict as assert } from 'node:assert'
import * as fc from 'fast-check'
import { law, type Trial } from '../law.js'
import { starts } from '../traffic.js'

const LONGEST_MS = 3_600_000

/** Each a post, and a pause that may end exactly with the life of the text or a microsecond before. */
const posts = fc.array(
  fc.record({
    author: fc.constantFrom('one', 'one:two', 'ä\n\0😀', ''),
    text: fc.string({ unit: 'grapheme', maxLength: 40 }),
    lifeMs: fc.oneof(fc.integer({ min: 1, max: LONGEST_MS }), fc.constantFrom(1, LONGEST_MS)),
    pause: fc.constantFrom('none', 'just alive', 'just over'),
  }),
  { maxLength: 12, size: 'max' },
)

/**
 * Declares the law of boards, on which processes leave texts for each other: a board returns the latest text of each author until
 * `lifeMs` milliseconds after it was posted, and no other board sees it. `kept` is what the board should hold, by author. The
 * drawn pauses move the clock, in microseconds, to the end of a text's life or a microsecond before it. A store without boards
 * passes.
 */
export function boards(trial: Trial): void {
  const drawn = fc.record({ start: starts, posts })

  law(trial, 'hold the latest text of each author until its life is over', drawn, async (session, value) => {
    const name = session.freshKey()
    const [board, other] = [session.store.board?.(name), session.store.board?.(session.freshKey())]
    if (!board) return // optional, and no part of any other promise
    const kept = new Map<string, { readonly text: string; readonly until: number }>()
    /** Asserts that the board returns the latest text of each author whose life is not over, in any order, and no other text. */
    const expectKept = async (): Promise<void> => {
      const texts = [...kept.values()].filter(({ until }) => until > session.now).map(({ text }) => text)
      assert.deepEqual([...(await board.read())].toSorted(), texts.toSorted())
    }
    await expectKept()
    for (const { author, text, lifeMs, pause } of value.posts) {
      await board.post(author, text, lifeMs)
      kept.set(author, { text, until: session.now + lifeMs * 1000 })
      await expectKept()
      if (pause !== 'none') session.now += lifeMs * 1000 - (pause === 'just over' ? 0 : 1)
      await expectKept()
    }
    assert.deepEqual(await other!.read(), [])
    assert.equal((await session.store.board!(name).read()).length, (await board.read()).length)
  })
}

// The environment of Jest on a machine without Redis: a test that asks for a server is skipped, and so is one of a block
// whose set-up asks for one; so with Postgres. Jest cannot skip from inside a test; elsewhere this is an exception of its own, as Python's
// unittest.SkipTest. `startRedis` throws an error with the code NO_REDIS, `startPostgres` NO_POSTGRES, and every other error
// fails the test as ever.
import OwnStorages from './own-storages.js'

/** @typedef {import('@jest/types').Circus.AsyncEvent} AsyncEvent */
/** @typedef {import('@jest/types').Circus.SyncEvent} SyncEvent */
/** @typedef {import('@jest/types').Circus.State} State */
/** @typedef {import('@jest/types').Circus.DescribeBlock} DescribeBlock */
/** @typedef {import('@jest/types').Circus.TestEntry} TestEntry */

export default class WithoutRedis extends OwnStorages {
  /** Tests that asked for a server, and the blocks around, whose `afterAll` has nothing to end. @type {WeakSet<object>} */
  #skipped = new WeakSet()

  /**
   * @param {AsyncEvent | SyncEvent} event
   * @param {State} state
   */
  async handleTestEvent(event, state) {
    await super.handleTestEvent(event, state)
    if (event.name === 'hook_failure') this.#afterHook(event, state)
    else if (event.name === 'test_fn_failure' && wantsRedis(event.error)) this.#skip(event.test)
    else if (event.name === 'test_skip' || event.name === 'test_done') this.#finish(event.test)
  }

  /**
   * @param {Extract<AsyncEvent, { name: 'hook_failure' }>} event
   * @param {State} state
   */
  #afterHook({ hook, error, describeBlock, test }, state) {
    if (hook.type === 'afterAll') {
      if (describeBlock && this.#skipped.has(describeBlock)) state.unhandledErrors.pop()
    } else if (wantsRedis(error)) {
      for (const each of test ? [test] : testsUnder(describeBlock)) this.#skip(each)
      if (describeBlock) this.#skipped.add(describeBlock)
    }
  }

  /** @param {TestEntry} test */
  #skip(test) {
    test.mode = 'skip'
    this.#skipped.add(test).add(test.parent)
  }

  /** Ignores what else failed for want of the server, in other hooks. @param {TestEntry} test */
  #finish(test) {
    if (!this.#skipped.has(test)) return
    test.errors = []
    test.status = 'skip'
  }
}

/**
 * @param {DescribeBlock | undefined} block
 * @returns {TestEntry[]}
 */
function testsUnder(block) {
  return (block?.children ?? []).flatMap((child) => (child.type === 'test' ? [child] : testsUnder(child)))
}

/** @param {unknown} error */
function wantsRedis(error) {
  return (
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    (error.code === 'NO_REDIS' || error.code === 'NO_POSTGRES')
  )
}

// Whatever is measured runs in a process of its own: no contender pays for another's garbage, timers or shapes.
import { fork } from 'node:child_process'
import { once } from 'node:events'

/**
 * @typedef {object} Child
 * @property {(question: object) => Promise<any>} ask What it answers; rejects when it fails or dies.
 * @property {() => Promise<void>} stop
 */

/** The longest that any question may take, in milliseconds. */
const PATIENCE_MS = 300_000

/**
 * Starts a module that calls `answering`.
 * @param {URL} module
 * @param {readonly string[]} args
 * @param {{ execArgv?: string[] }} options
 * @returns {Child}
 */
export function startChild(module, args, { execArgv = [] } = {}) {
  const child = fork(module, [...args], { execArgv, serialization: 'advanced' })
  const gone = once(child, 'exit')
  const name = args.join(' ')
  return {
    async ask(question) {
      const patience = AbortSignal.timeout(PATIENCE_MS)
      const reply = once(child, 'message', { signal: patience })
      const death = gone.then(([code]) => Promise.reject(new Error(`${name} ended with ${code}`)))
      child.send(question)
      const [{ failure, answer }] = await Promise.race([reply, death]).catch((error) => {
        throw patience.aborted ? new Error(`${name} gave no answer within ${PATIENCE_MS} ms`) : error
      })
      if (failure !== undefined) throw new Error(`${name}: ${failure}`)
      return answer
    },
    async stop() {
      child.kill('SIGKILL')
      await gone
    },
  }
}

/**
 * In a child: answers the questions of the process that started it.
 * @param {(question: any) => unknown} answerTo
 */
export function answering(answerTo) {
  const answer = async (/** @type {unknown} */ question) => {
    try {
      process.send?.({ answer: await answerTo(question) })
    } catch (error) {
      process.send?.({ failure: error instanceof Error ? error.stack : String(error) })
    }
  }
  process.on('message', (question) => void answer(question))
  process.on('disconnect', () => process.exit())
}

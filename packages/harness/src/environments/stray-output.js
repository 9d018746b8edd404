// The reporter that fails a run in which something was written beside results and that no test answers for: what a worker of Jest
// or a child of it wrote past its streams, and Jest's own messages, such as that of a worker that did not exit.

import { writeSync } from 'node:fs'

export default class StrayOutput {
  /** @type {string[]} */
  #heard = []

  constructor() {
    for (const stream of [process.stdout, process.stderr]) {
      // Jest pipes what its workers write.
      stream.on('pipe', (source) => {
        source.on('data', (/** @type {Buffer} */ chunk) => void this.#heard.push(String(chunk)))
      })
    }
    const { error } = console
    console.error = (...args) => {
      this.#heard.push(args.join(' '))
      error(...args)
    }
  }

  /** Says what a run fails for below its summary, as of a long log the last lines are kept. */
  onRunComplete() {
    const error = this.getLastError()
    if (error) process.once('exit', () => writeSync(2, `The run fails: ${error.message}\n`))
  }

  /** The error for which a run fails; undefined after a quiet one. */
  getLastError() {
    if (this.#heard.length > 0) return new Error(`output beside results: ${this.#heard.join('')}`)
  }
}

// The environment of each test file. Jest runs every test in an AsyncLocalStorage, of which each file has one of its own. Node 20
// and 22 ask all that were ever used about each promise, until they are disabled, which Jest does not do: after a hundred files a
// promise takes 30 times as long. Here the storages that a file used end with it.
import { AsyncLocalStorage } from 'node:async_hooks'
import Quiet from './quiet.js'

export default class OwnStorages extends Quiet {
  /** The storages that this file has used. @type {Set<AsyncLocalStorage<unknown>>} */
  #used = new Set()
  #restore = () => {}

  async setup() {
    await super.setup()
    const used = this.#used
    const { prototype } = AsyncLocalStorage
    const { run, enterWith } = prototype
    this.#restore = () => void Object.assign(prototype, { run, enterWith })
    Object.assign(prototype, { run: noting(run), enterWith: noting(enterWith) })

    /** @param {Function} method */
    function noting(method) {
      /** @this {AsyncLocalStorage<unknown>} @param {unknown[]} args */
      return function (...args) {
        used.add(this)
        return method.apply(this, args)
      }
    }
  }

  async teardown() {
    this.#restore()
    for (const storage of this.#used) storage.disable()
    await super.teardown()
  }
}

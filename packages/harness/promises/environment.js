// The environment of Jest in which the global Promise of a test file is that of another library, or a class of its own: the
// option `promise` names it. Async functions go on to return the native promises of the language, which are then no instances of
// the global Promise. zone.js patches whatever it finds, and for ever: it finds the globals of this file, and copies of Node's
// modules.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { compileFunction, runInContext } from 'node:vm'
import OwnStorages from '../src/environments/own-storages.js'
import WithoutRedis from '../src/environments/without-redis.js'

const require = createRequire(import.meta.url)
const Environment = process.env['SLUICE_WITHOUT_REDIS'] ? WithoutRedis : OwnStorages

export default class OtherPromise extends Environment {
  /** @type {unknown} */
  #promise

  /** @param {ConstructorParameters<typeof OwnStorages>} args */
  constructor(...args) {
    super(...args)
    this.#promise = args[0].projectConfig.testEnvironmentOptions['promise']
  }

  async setup() {
    await super.setup()
    const context = /** @type {import('node:vm').Context} */ (this.getVmContext())
    if (this.#promise === 'zone.js') {
      const path = require.resolve('zone.js/node')
      const run = compileFunction(readFileSync(path, 'utf8'), ['require', 'module', 'exports'], {
        filename: path,
        parsingContext: context,
      })
      this.global['__Zone_disable_EventEmitter'] = true // its prototype is that of all files of this process
      run(copied, { exports: {} }, {})
    } else {
      this.global.Promise = runInContext('(class OwnPromise extends Promise {})', context)
    }
  }
}

/** A copy of one of Node's modules, whose functions zone.js replaces. @param {string} name */
function copied(name) {
  return { ...require(name) }
}

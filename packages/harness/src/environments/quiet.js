// The environment of a test file that has to be quiet. What its tests write, and none of them expects, fails the test that it was
// written in: a warning of the process, a line of the console, and what this process, its worker threads or its children write to
// stdout or stderr. What is written outside of tests counts for the test that ends next; after the last one it fails the file. A
// test expects a warning by `expectWarnings` of @sluice/harness/warnings, and lines of the console by a spy.
import { ChildProcess } from 'node:child_process'
import { TestEnvironment } from 'jest-environment-node'
import { isKnown, isKnownLine } from './known-warnings.js'

/** @typedef {import('../warnings/index.ts').Expectation} Expectation */
/** @typedef {import('@jest/types').Circus.AsyncEvent} AsyncEvent */
/** @typedef {import('@jest/types').Circus.SyncEvent} SyncEvent */
/** @typedef {import('@jest/types').Circus.State} State */
/** @typedef {Error & { readonly code?: string | undefined }} Warning */
/** @typedef {{ getBuffer(): { type: string, message: string, origin: string }[] | null | undefined }} KeptLines */

/** What Node prints warnings with. @type {((warning: Error) => void)[] | undefined} */
let printers

/** Prints a warning that comes between files or after the last one of this process, unless it is known. @param {Warning} warning */
function printUnknown(warning) {
  if (!isKnown(warning)) for (const print of printers ?? []) print(warning)
}

const STREAMS = /** @type {const} */ (['stdin', 'stdout', 'stderr'])

export default class Quiet extends TestEnvironment {
  /** What was written since a test ended last and is expected by none, as the errors of a test. @type {Error[]} */
  #stray = []
  /** Warnings of ours since then. @type {Warning[]} */
  #warnings = []
  /** What the test that runs expects. @type {Expectation[]} */
  #expected = []
  /** Puts back what `setup` replaced, the last first. @type {(() => void)[]} */
  #restored = []
  /** The console of the file. @type {KeptLines} */
  #console
  /** Whether a test has failed, which then may not have come to close what it opened. */
  #hasFailed = false
  /** Resources that kept this process alive before the file ran. @type {readonly string[]} */
  #open = []

  /** @param {ConstructorParameters<typeof TestEnvironment>} args */
  constructor(...args) {
    super(...args)
    this.#console = /** @type {KeptLines} */ (/** @type {unknown} */ (args[1].console))
  }

  async setup() {
    await super.setup()
    this.#open = resources()
    this.global['sluice.expectations'] = this.#expected
    this.#hearWarnings()
    this.#hearStreams()
    this.#hearChildren()
  }

  async teardown() {
    for (const restore of this.#restored.splice(0).toReversed()) restore()
    await super.teardown()
  }

  /**
   * @param {AsyncEvent | SyncEvent} event
   * @param {State} state
   */
  async handleTestEvent(event, state) {
    if (event.name !== 'test_done' && event.name !== 'run_finish') return
    await new Promise((resolve) => setImmediate(resolve)) // Node emits a warning in the next tick
    const errors = event.name === 'test_done' ? event.test.errors : state.unhandledErrors
    errors.push(...this.#take())
    this.#hasFailed ||= errors.length > 0
    this.#forget()
    if (event.name === 'run_finish' && !this.#hasFailed) errors.push(...(await this.#leftOpen()))
  }

  /**
   * Waits until the file keeps this process alive no longer than it was kept before; otherwise Jest would have to end it. After
   * five seconds, long enough on a busy machine, the timers, sockets, servers and children that are left are an error.
   */
  async #leftOpen() {
    /** @type {readonly string[]} */
    let left = []
    for (let waited = 0; waited < 500; waited++) {
      left = resources()
      for (const each of this.#open) if (left.includes(each)) left = left.toSpliced(left.indexOf(each), 1)
      if (left.length === 0) return []
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    return [found(`the file has ended and left open: ${left.join(', ')}`)]
  }

  /** Takes what was written since a test ended last, and what is expected and was not written, as errors. */
  #take() {
    const expected = this.#expected.splice(0)
    const codes = new Set(expected.flatMap(({ required, perhaps }) => [...required, ...perhaps]))
    const warnings = this.#warnings.splice(0)
    const unexpected = warnings.filter((each) => !codes.has(String(each.code)) && !isKnown(each))
    const written = new Set(warnings.map(({ code }) => code))
    const missing = expected.flatMap(({ required }) => required.filter((code) => !written.has(code)))
    const lines = (this.#console.getBuffer()?.splice(0) ?? []).filter(
      ({ message, origin }) => !isKnownLine(`${message}\n${origin}`),
    )
    return [
      ...unexpected.map((warning) => found(`a warning that no test expects: ${textOf(warning)}`, warning)),
      ...missing.map((code) => found(`no warning was written with the code ${code}, which the test expects`)),
      ...lines.map(({ type, message, origin }) =>
        found(`console.${type} in a test: ${message}`, { stack: `\n${origin}` }),
      ),
      ...this.#stray.splice(0),
    ]
  }

  /** Lets a warning that is written once for a process be written again, so that it comes in whichever tests cause it. */
  #forget() {
    for (const symbol of Object.getOwnPropertySymbols(this.global)) {
      if (/^sluice\.(?:warned|folders)\./.test(symbol.description ?? ''))
        /** @type {Set<string>} */ (this.global[/** @type {never} */ (symbol)]).clear()
    }
  }

  /** Hears warnings of this process, in place of Node, which would print them. */
  #hearWarnings() {
    const { process: own } = this.global
    const { emitWarning } = own
    // Here and not below, because this one knows whose file it is, and a test sees at once what was written.
    own.emitWarning = /** @type {typeof process.emitWarning} */ (
      /** @param {Parameters<typeof process.emitWarning>} args */
      (...args) => {
        const [text, details] =
          /** @type {[string | Error, { type?: string, code?: string } | undefined]} */ (args)
        if (details?.type !== 'SluiceWarning') return emitWarning(...args)
        const warning = Object.assign(new Error(String(text)), { name: details.type, code: details.code })
        this.#warnings.push(warning)
        for (const { written } of this.#expected)
          written.push({ code: details.code ?? '', message: String(text) })
      }
    )
    /** @param {Warning} warning */
    const heard = (warning) => {
      if (!isKnown(warning))
        this.#stray.push(found(`a warning that no list has: ${textOf(warning)}`, warning))
    }
    printers ??= /** @type {((warning: Error) => void)[]} */ (process.listeners('warning'))
    process.removeAllListeners('warning')
    process.on('warning', heard)
    own.on('deprecation', heard) // of the package depd, which prints what has no listener
    this.#restored.push(() => {
      own.emitWarning = emitWarning
      process.off('warning', heard)
      process.on('warning', printUnknown)
    })
  }

  /** Hears what this process and its worker threads write, and writes it all the same: the process may end before the test. */
  #hearStreams() {
    for (const name of ['stdout', 'stderr']) {
      const stream = process[/** @type {'stdout' | 'stderr'} */ (name)]
      const { write } = stream
      /** @param {Parameters<typeof write>} args */
      const heard = (...args) => {
        if (args[0].length > 0) this.#stray.push(found(`a test wrote to ${name}: ${String(args[0])}`)) // spawnSync writes nothing too
        return write.apply(stream, args)
      }
      stream.write = /** @type {typeof write} */ (heard)
      this.#restored.push(() => void (stream.write = write))
    }
  }

  /** Hears children that inherit stdout or stderr: each gets a pipe, of which this process writes what comes. */
  #hearChildren() {
    const prototype = /** @type {{ spawn(options: { stdio?: unknown }): unknown }} */ (
      /** @type {unknown} */ (ChildProcess.prototype)
    )
    const { spawn } = prototype
    /** @this {ChildProcess} @param {{ stdio?: unknown }} options */
    prototype.spawn = function (options) {
      const { stdio = 'pipe' } = options
      const entries = Array.isArray(stdio) ? stdio : [stdio, stdio, stdio]
      const inherited = [1, 2].filter((fd) =>
        ['inherit', fd, process[STREAMS[fd] ?? 'stdin']].includes(entries[fd]),
      )
      const changed = entries.map((entry, fd) => (inherited.includes(fd) ? 'pipe' : entry))
      const result = spawn.call(this, { ...options, stdio: changed })
      for (const fd of inherited) {
        const pipe = /** @type {import('node:net').Socket} */ (this.stdio[fd])
        pipe.on('data', (chunk) => void (fd === 1 ? process.stdout : process.stderr).write(chunk)).unref()
      }
      return result
    }
    this.#restored.push(() => void (prototype.spawn = spawn))
  }
}

/** What keeps this process alive, but for the channel to Jest and what waits in this turn. */
function resources() {
  return process.getActiveResourcesInfo().filter((each) => each !== 'PipeWrap' && each !== 'Immediate')
}

/** @param {Warning} warning */
function textOf({ name, code, message }) {
  return `${name}${code === undefined ? '' : ` [${code}]`} ${message}`
}

/**
 * Makes the error of a test for what was found, with the frames of where it was written.
 * @param {string} text
 * @param {{ readonly stack?: string | undefined }} [origin]
 */
function found(text, origin) {
  const error = new Error(text)
  const frames = origin?.stack
    ?.split('\n')
    .filter((line) => /^\s+at /.test(line) && !line.includes('/environments/quiet.js:'))
  if (frames) error.stack = `Error: ${text}\n${frames.join('\n')}`
  return error
}

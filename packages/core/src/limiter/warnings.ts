import type { Events } from './events.js'

/**
 * Reports likely mistakes in the set-up, once per code or `id`: as a 'warning' event if that has listeners, else as a process
 * warning.
 */
export class Warnings {
  readonly #events: Events
  readonly #limiter: string
  readonly #reported = new Set<string>()
  #isEmitting = false

  constructor(events: Events, limiter: string) {
    this.#events = events
    this.#limiter = limiter
  }

  warn(code: string, message: string, id = code): void {
    if (this.#reported.has(id)) return
    this.#reported.add(id)
    // A listener of warnings that throws is reported to the process.
    const hasListener = this.#events.has('warning') && !this.#isEmitting
    if (hasListener) return this.#emit(code, message)
    const text = `limiter '${this.#limiter}': ${message}`
    if (typeof process === 'object' && typeof process.emitWarning === 'function') {
      process.emitWarning(text, { type: 'SluiceWarning', code })
    } else {
      console.warn(`SluiceWarning [${code}] ${text}`)
    }
  }

  #emit(code: string, message: string): void {
    this.#isEmitting = true
    try {
      this.#events.emit('warning', { code, message })
    } finally {
      this.#isEmitting = false
    }
  }
}

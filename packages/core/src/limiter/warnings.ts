import type { Events } from './events.js'

/**
 * Reports something that is likely set up wrongly, once per code or `id`: as a 'warning' event where somebody listens, else
 * as a process warning.
 */
export class Warnings {
  readonly #events: Events
  readonly #limiter: string
  readonly #told = new Set<string>()
  #isEmitting = false

  constructor(events: Events, limiter: string) {
    this.#events = events
    this.#limiter = limiter
  }

  warn(code: string, message: string, id = code): void {
    if (this.#told.has(id)) return
    this.#told.add(id)
    // A listener of warnings that throws is reported to the process.
    const isHeard = this.#events.has('warning') && !this.#isEmitting
    if (isHeard) return this.#emit(code, message)
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

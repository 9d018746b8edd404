import type { Events } from './events.js'

/**
 * Reports something that is likely set up wrongly, once per code: as a 'warning' event where somebody listens, else
 * as a process warning.
 */
export class Warnings {
  readonly #events: Events
  readonly #limiter: string
  readonly #told = new Set<string>()

  constructor(events: Events, limiter: string) {
    this.#events = events
    this.#limiter = limiter
  }

  warn(code: string, message: string): void {
    if (this.#told.has(code)) return
    this.#told.add(code)
    if (this.#events.has('warning')) return this.#events.emit('warning', { code, message })
    const text = `limiter '${this.#limiter}': ${message}`
    if (typeof process === 'object' && typeof process.emitWarning === 'function') {
      process.emitWarning(text, { type: 'SluiceWarning', code })
    } else {
      console.warn(`SluiceWarning [${code}] ${text}`)
    }
  }
}

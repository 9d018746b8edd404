/** A clock that moves only when it is moved, starting at 2026-01-01, in microseconds. */
export class FakeClock {
  #us = START_US
  /** For the option `clock` of a store. */
  readonly now = (): number => this.#us

  /** Moves to `ms` milliseconds after the start. */
  at(ms: number): void {
    this.#us = START_US + ms * 1000
  }

  /** Moves on by `ms` milliseconds. */
  pass(ms: number): void {
    this.#us += ms * 1000
  }
}

/** A multiple of a day, so windows up to a day begin at the start. */
const START_US = Date.UTC(2026, 0, 1) * 1000

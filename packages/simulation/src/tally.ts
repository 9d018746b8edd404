import type { History } from './simulation.js'

/** What was run, in counts. */
export class Tally {
  #schedules = 0
  #calls = 0
  #steps = 0
  #executions = 0
  /** Calls in outages, by reason or error. */
  readonly #degraded = new Map<string, number>()
  #checked = 0
  /** Milliseconds of schedules, and of their scripts alone. */
  #took = 0
  #bare = 0
  readonly #faults = new Map<string, number>()
  readonly #pairs = new Map<string, number>()
  readonly #began = performance.now()

  /** Adds a schedule, which with the laws took so many milliseconds. Of some it measures how long their scripts take alone. */
  add({ records, world, server, faults }: History, checked: number, took: number): void {
    if (this.#schedules % 5 === 0) {
      this.#took += took
      this.#bare += server.runBare()
    }
    this.#schedules++
    this.#calls += records.length
    this.#steps += world.steps
    this.#executions += server.executions.length
    for (const { told, error } of records) {
      const reason = told?.degraded ?? error
      if (reason !== undefined) add(this.#degraded, reason)
    }
    this.#checked += checked
    const names = faults.map(({ fault }) => fault)
    for (const name of names) add(this.#faults, name)
    const pairs = names.flatMap((one, i) =>
      names.slice(i + 1).map((two) => [one, two].toSorted().join(' + ')),
    )
    for (const pair of new Set(pairs)) add(this.#pairs, pair)
  }

  report(): string {
    const seconds = (performance.now() - this.#began) / 1000
    const listed = (counted: ReadonlyMap<string, number>): string[] =>
      [...counted].toSorted((a, b) => b[1] - a[1]).map(([name, n]) => `  ${name}: ${n}`)
    const counts = [...this.#pairs.values()].toSorted((a, b) => a - b)
    return [
      `${this.#schedules} schedules in ${seconds.toFixed(0)} s: ${this.#calls} calls,`,
      `${this.#executions} scripts, ${this.#steps} steps, ${this.#checked} checks of laws`,
      `${(this.#bare / this.#took).toFixed(2)} of the speed of the same scripts alone`,
      'faults',
      ...listed(this.#faults),
      `  ${this.#pairs.size} pairs of faults, the rarest ${counts[0] ?? 0} times, half of them ${counts[counts.length >> 1] ?? 0} times or more`,
      'calls that were degraded or failed',
      ...listed(this.#degraded),
    ].join('\n')
  }
}

function add(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

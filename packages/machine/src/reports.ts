import type { Notice, Report } from '@sluice/core/store'

/** The callbacks of the limiters of this process by name, each for as long as a keyspace or its limiter holds it. */
export class Reports {
  readonly #byName = new Map<string, Set<WeakRef<Report>>>()
  readonly #collected = new FinalizationRegistry<Reference>((reference) => this.#remove(reference))

  add(name: string, report: Report): void {
    const refs = this.#byName.get(name) ?? new Set()
    for (const ref of refs) if (ref.deref() === report) return
    const ref = new WeakRef(report)
    this.#byName.set(name, refs.add(ref))
    this.#collected.register(report, { name, ref })
  }

  /** Passes a notice to all limiters of this name. */
  pass(name: string, notice: Notice): void {
    for (const ref of this.#byName.get(name) ?? []) ref.deref()?.(notice)
  }

  #remove({ name, ref }: Reference): void {
    const refs = this.#byName.get(name)
    refs?.delete(ref)
    if (refs?.size === 0) this.#byName.delete(name)
  }
}

interface Reference {
  readonly name: string
  readonly ref: WeakRef<Report>
}

/** Numbers for label values: the first `most` get one of their own, all others share the last. */
export class BoundedLabels {
  readonly labels: string[] = []
  readonly #most: number
  readonly #numbers = new Map<string, number>()

  constructor(most: number) {
    this.#most = most
  }

  numberOf(label: string): number {
    const known = this.#numbers.get(label)
    if (known !== undefined) return known
    const number = this.labels.length
    if (number >= this.#most) {
      if (number === this.#most) this.labels.push(OTHER)
      return this.#most
    }
    this.labels.push(label)
    this.#numbers.set(label, number)
    return number
  }
}

export const OTHER = 'other'

/** Numbers for label values: the first `most` get one of their own, all others share the last. */
export class BoundedLabels {
  readonly labels: string[] = []
  readonly #numbers = new Map<string, number>()

  constructor(private readonly most: number) {}

  /**
   * Returns the number under which values of a label are counted: 0 for the first label, the next number for each new one. When
   * there are `most`, all further labels share the number of 'other', so that no input makes the metrics grow without end. A label
   * 'other' shares it too, and so do labels of malformed Unicode, which are all written alike: series of equal labels would hide
   * each other.
   */
  numberFor(label: string): number {
    const known = this.#numbers.get(label)
    if (known !== undefined) return known
    const isOther = this.#numbers.size >= this.most || MALFORMED.test(label)
    if (isOther && label !== OTHER) return this.numberFor(OTHER)
    const number = this.labels.push(label) - 1
    this.#numbers.set(label, number)
    return number
  }
}

export const OTHER = 'other'

const MALFORMED = /\p{Surrogate}/u

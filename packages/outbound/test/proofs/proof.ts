/** Something that is promised of a fleet that calls a real server over HTTP, and whether it was so. */
export interface Proof {
  readonly title: string
  /** `share` of the full load, 1 in scripts/measure-outbound.js, less in `npm test`. */
  run(share: number): Promise<Outcome>
}

export interface Outcome {
  /** What has to hold on any machine, however busy: asserted by `npm test`. */
  readonly holds: boolean
  /** All of it, times and throughput included. */
  readonly pass: boolean
  /** What was seen, in numbers. */
  readonly figure: string
}

export const percent = (part: number, whole: number): string => `${((100 * part) / whole).toFixed(1)} %`

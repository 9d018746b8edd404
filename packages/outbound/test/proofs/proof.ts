/** A promise about a fleet that calls a real server over HTTP, and the program that checks it. */
export interface Proof {
  readonly title: string
  /**
   * What it asserts depends on how busy the machine is: a time, or a call that must not run into a deadline. Run by
   * `npm run bench -- outbound` alone.
   */
  readonly timed?: boolean
  /** `share` of the full load, 1 in `npm run bench -- outbound`, less in `npm test`. */
  run(share: number): Promise<Outcome>
}

export interface Outcome {
  /** What must hold on any machine, however busy: asserted by `npm test`. */
  readonly holds: boolean
  /** Everything, times and throughput included: asserted by `npm run bench -- outbound`. */
  readonly pass: boolean
  /** The measured numbers. */
  readonly figure: string
}

export const percent = (part: number, whole: number): string => `${((100 * part) / whole).toFixed(1)} %`

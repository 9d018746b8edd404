/** Seeds that once broke a law, with what was wrong. */
export const KEPT: Readonly<Record<number, string>> = {
  7: 'a reservation was settled once more after its end',
  11: 'a block that was over came back where time stands still',
}

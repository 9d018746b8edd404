/** Seeds that once broke a law, with what was wrong. */
export const KEPT: Readonly<Record<number, string>> = {
  7: 'a block that was over came back where time stands still',
  20: 'a booking said that it was not sent while its last attempt was on its way',
}

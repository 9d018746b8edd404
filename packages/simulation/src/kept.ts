/** Seeds that once broke a law, with what was wrong. */
export const KEPT: Readonly<Record<number, string>> = {
  4622: 'a time of grace outlasted the clock of Redis that was set back: no permits for as long',
}

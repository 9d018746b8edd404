/** Seeds that once broke a law, with what was wrong. */
export const KEPT: Readonly<Record<number, string>> = {
  6213: 'a time of grace outlasted the clock of Redis that was set back: no permits for as long',
}

import { type Option, readOption, whole } from '@sluice/core/internal'

const ABOUT = { what: 'conformance' }
/** Without a run nothing is tried and nothing fails, so there is at least one. */
const runs = (otherwise: number): Option<number> => whole(1, 2 ** 31 - 1, otherwise)

/** The number of runs that is given as the option `name`, `otherwise` if it is left out. @throws {PolicyError} INVALID_OPTION. */
export function runsOf(given: number | undefined, name: string, otherwise: number): number {
  return readOption(runs(otherwise), given, name, ABOUT)
}

/**
 * The number of runs that the environment variable `name` sets, `otherwise` if it is not set.
 * @throws {PolicyError} INVALID_OPTION for any other text than a whole number above 0, an empty one too.
 */
export function runsIn(name: string, otherwise: number): number {
  return readOption(runs(otherwise), numberIn(name), name, ABOUT)
}

/** The seed in CONFORMANCE_SEED; undefined if it is not set. @throws {PolicyError} INVALID_OPTION for no whole number. */
export function seedGiven(): number | undefined {
  return readOption(whole(-(2 ** 31), 2 ** 31 - 1), numberIn('CONFORMANCE_SEED'), 'CONFORMANCE_SEED', ABOUT)
}

/** The whole number in an environment variable, or its text where that is none, so that a message can show it. */
function numberIn(name: string): number | string | undefined {
  const text = process.env[name]
  return text !== undefined && /^-?\d+$/.test(text) ? Number(text) : text
}

import type { ReadOptions } from './calls.js'
import type { Format, FormatOpener } from './format.js'
import { json } from './json-format.js'
import { textFormats } from './text-formats.js'
import { resolutionOf, TimeReader } from './times.js'
import { withoutColours, type Wrapper, wrappers } from './wrappers.js'

const FORMATS: readonly FormatOpener[] = [...textFormats, json]

/** The names that `--format` takes. */
export const FORMAT_NAMES: readonly string[] = FORMATS.map(({ name }) => name)

/** Thrown for a source that is no log, or has no field that is asked for. */
export class NoLogError extends Error {
  override readonly name = 'NoLogError'
}

/** The format of one source. */
export type Detected = Omit<ReturnType<typeof scored>, 'score' | 'missing'>

/**
 * Finds the format of a log by `sample`, its first lines. Every format is tried inside every wrapper, such as the JSON of
 * Docker, and the pair wins that finds most times and needed parts: the parts of a call by which `options` group calls,
 * and their cost. `source` is the log's name, for the error.
 * @throws {NoLogError} if the best one finds no time, or one of the parts in no line; it says which flag would help.
 */
export function detect(source: string, sample: readonly string[], options: ReadOptions): Detected {
  const { format: name, fields = {}, selectors, cost } = options
  const needs = [...new Set(selectors.map(({ by = 'ip' }) => by)), ...(cost === undefined ? [] : [cost])]
  const openers = FORMATS.filter((opener) => name === undefined || opener.name === name)
  let best: ReturnType<typeof scored> | undefined
  for (const [i, wrapper] of wrappers().entries()) {
    const inner = sample.map((line) => withoutColours(wrapper.unwrap(line) ?? '')).filter(Boolean)
    for (const opener of openers) {
      const format = opener.open(new TimeReader(), inner, fields)
      // A wrapper keeps the part of a line that is not whole yet, so the log gets a new one.
      const candidate = scored(format, wrappers()[i]!, inner, needs)
      if (candidate.score > (best?.score ?? 0)) best = candidate
    }
  }
  if (best && best.missing === undefined) return best
  const missing = best?.missing ?? 'time'
  const first = withoutColours(sample[0]!).slice(0, 160)
  const flag = missing === cost ? '--cost' : best ? '--by' : `--format ${FORMAT_NAMES.join('|')}`
  const isField = first.startsWith('{') && !missing.includes(':')
  const advice = `name it with ${isField ? `--field ${missing}=PATH` : flag}. The first line is: ${first}`
  throw new NoLogError(`${source}: no field for '${missing}' was found; ${advice}`)
}

/**
 * Reads `lines` by one format and counts what it found. `score` is the number of times and of needed parts (`needs`) in
 * all lines; `missing` is the first needed part that no line has. Also returns what is known of the log then: the unit of
 * its times, and whether calls have durations.
 */
function scored(format: Format, wrapper: Wrapper, lines: string[], needs: string[]) {
  const times: number[] = []
  const counts = needs.map(() => 0)
  let hasDurations = false
  for (const line of lines) {
    if (!format.read(line) || Number.isNaN(format.time)) continue
    times.push(format.time)
    hasDurations ||= format.duration > 0
    needs.forEach((need, i) => (counts[i]! += format.part(need) === undefined ? 0 : 1))
  }
  const missing = needs[counts.indexOf(0)]
  const score = counts.reduce((sum, count) => sum + count, times.length)
  const title = wrapper.name === '' ? format.name : `${format.name} in ${wrapper.name}`
  return { title, format, wrapper, resolution: resolutionOf(times), hasDurations, score, missing }
}

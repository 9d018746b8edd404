import { type Duration, formatDuration } from './duration.js'
import { type Option, REFUSED } from './options.js'
import { warnProcess } from './process-warning.js'

/*
 * The warning about numbers that are meant in seconds, as other packages take them. `window: 60` would limit almost nothing, and
 * a ban of 3600 ends after 3.6 s. It is for windows and blocks alone: elsewhere short durations are usual.
 */

/** Half an hour, hours, half a day, a day and a week in seconds. */
const IN_SECONDS = new Set([1800, 3600, 7200, 43_200, 86_400, 604_800])

/** The places that were warned of in this process. */
const warned = new Set<string>()

/**
 * Warns of a number of milliseconds that was probably meant as seconds, once for a place. A text has its unit and is
 * never one.
 */
export function warnIfShort(place: string, given: Duration): void {
  if (typeof given !== 'number' || (given >= 1000 && !IN_SECONDS.has(given)) || warned.has(place)) return
  warned.add(place)
  const meant = formatDuration(given * 1000)
  warnProcess('DURATION_SHORT', `${place}: ${given} is ${given / 1000} s; write '${meant}' or '${given}ms'`)
}

/** The same option, which also warns of a number that was probably meant as seconds. */
export function notShort<Ms extends number | undefined>(option: Option<Ms>): Option<Ms> {
  return {
    ...option,
    parse(value, name) {
      const ms = option.parse(value, name)
      if (ms !== REFUSED) warnIfShort(name, value as Duration)
      return ms
    },
  }
}

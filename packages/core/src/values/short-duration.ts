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
 * Warns of a duration, given as a number of milliseconds, that was probably meant as seconds: below 1000, or a usual number of
 * seconds such as 3600. Once for each `place`, the name of an option or function. A text such as '60s' has its unit and needs no
 * warning.
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
    /**
     * Parses the option `name` as before, into milliseconds or REFUSED. If `value`, as the user wrote it, is accepted and is a
     * number that was probably meant as seconds, it warns.
     */
    parse(value, name) {
      const ms = option.parse(value, name)
      if (ms !== REFUSED) warnIfShort(name, value as Duration)
      return ms
    },
  }
}

import { clientAddress } from '@sluice/http'
import type { Format, FormatOpener } from './format.js'
import { json } from './json-format.js'
import type { ReadOptions } from './read-options.js'
import { REFUSED, textFormats } from './text-formats.js'
import { resolutionOf, TimeReader } from './times.js'
import { w3c } from './w3c-format.js'
import { withoutColours, type Wrapper, wrappers } from './wrappers.js'

const FORMATS: readonly FormatOpener[] = [...textFormats, w3c, json]

/** The names that `--format` takes. */
export const FORMAT_NAMES: readonly string[] = FORMATS.map(({ name }) => name)

/** Thrown for a source that is no log, or has no field that is asked for. */
export class NoLogError extends Error {
  override readonly name = 'NoLogError'
}

/** The format of one source. */
export type Detected = Omit<ReturnType<typeof scoreOf>, 'score' | 'missing' | 'isRead'>

/**
 * Finds the format of a log by `sample`, its first lines. Every format is tried inside every wrapper, such as the JSON of
 * Docker. The pair wins that finds most times and most of the needed parts: those by which `options` group and choose calls, and
 * their cost. `source` is the log's name, for the error.
 * @throws {NoLogError} if the best pair finds no time, or one of the parts in no line; it says which flag would help.
 */
export function detect(source: string, sample: readonly string[], options: ReadOptions): Detected {
  const { format: name, selectors, cost, trustProxy, needs: furtherNeeds = [] } = options
  const partsOfConditions = selectors
    .flatMap(({ where }) => where?.parts ?? [])
    .filter((part) => !part.includes(':'))
  const neededParts = new Set(['time', ...selectors.map(({ by = 'ip' }) => by)])
  if (cost !== undefined) neededParts.add(cost)
  for (const part of [...partsOfConditions, ...furtherNeeds]) neededParts.add(part)
  if (trustProxy) neededParts.add('forwarded')
  const formats = FORMATS.filter((format) => name === undefined || format.name === name)
  let best: ReturnType<typeof scoreOf> | undefined
  const plain = sample.map(withoutColours)
  for (const [i, wrapper] of wrappers().entries()) {
    const inner = plain.map((line) => withoutColours(wrapper.unwrap(line) ?? '')).filter(Boolean)
    if (inner.length === 0) continue
    for (const format of formats) {
      const open = () => format.open(new TimeReader(), inner, options)
      // A wrapper keeps the part of a line that is not whole yet, and a format half of a call, so the log gets new ones.
      const candidate = scoreOf(open, wrappers()[i]!, inner, [...neededParts], options)
      if (candidate.score > (best?.score ?? 0)) best = candidate
    }
  }
  if (best?.missing.length === 0) return best
  throw new NoLogError(
    `${source}: ${adviceOn(best, plain, options)}. The first line is: ${plain[0]!.slice(0, 160)}`,
  )
}

/** Advice for the error about a log that cannot be read: which parts it lacks by its `best` reading, and which flags would help. */
function adviceOn(
  best: ReturnType<typeof scoreOf> | undefined,
  sample: readonly string[],
  options: ReadOptions,
): string {
  const refused = REFUSED.find(([, form]) => sample.some((line) => form.test(line)))
  if (!best?.isRead && refused) return refused[0]
  const missing = best?.missing ?? ['time']
  const isJson = best?.format.name === 'json'
  const flags = missing.map((part) => {
    if (part === options.cost) return '--cost'
    return part.includes(':') ? '--by' : isJson ? `--field ${part}=PATH` : ''
  })
  if (options.callers !== 'names' && isReadWithNames(sample, options)) flags.push('--callers names')
  const helpful = [...new Set(flags.filter(Boolean))].join(' ')
  const why = best
    ? `lines of the format ${best.title} have none`
    : `no format reads it (${FORMAT_NAMES.join(', ')})`
  const names = missing.map((part) => `'${part}'`).join(', ')
  return `no field for ${names} was found; ${helpful === '' ? why : `name it with ${helpful}`}`
}

/** Whether the log could be read if names of hosts counted as callers too. */
function isReadWithNames(sample: readonly string[], options: ReadOptions): boolean {
  try {
    detect('', sample, { ...options, callers: 'names' })
    return true
  } catch {
    return false
  }
}

/**
 * Reads `lines` by one format, and counts the needed parts (`needs`, such as 'ip') that they have. A line that is not of the format
 * reads as false; one that is, is a call, the second half of one ('joined'), or something else. `score` is the number of parts in all
 * lines, plus a little for each line of the format; without any time, only that little. `missing` are the needed parts that no line
 * has. Also returns what is known of the log then: the unit of its times, and whether calls have durations and a status.
 */
function scoreOf(
  open: () => Format,
  wrapper: Wrapper,
  lines: readonly string[],
  needs: readonly string[],
  { callers }: ReadOptions,
) {
  const format = open()
  const times: number[] = []
  const linesWith = needs.map(() => 0)
  let linesOfFormat = 0
  let hasDurations = false
  let hasStatus = false
  const hasPart = (part: string): boolean => {
    if (part === 'time') return !Number.isNaN(format.time)
    const text = format.part(part)
    return part === 'ip' && callers !== 'names' ? clientAddress(text) !== undefined : text !== undefined
  }
  for (const line of lines) {
    const kind = format.read(line)
    if (kind === false) continue
    linesOfFormat++
    const isCall = kind === true || kind === 'joined'
    if (isCall && hasPart('time')) times.push(format.time)
    hasDurations ||= isCall && format.duration > 0
    hasStatus ||= isCall && format.part('status') !== undefined
    for (const [i, need] of needs.entries()) if (hasPart(need)) linesWith[i]!++
  }
  const missing = needs.filter((_, i) => linesWith[i] === 0)
  const found = linesWith.reduce((one, other) => one + other, 0)
  const isRead = times.length > 0
  const score = isRead ? found + linesOfFormat / 1e4 : linesOfFormat / 1e8
  const title = wrapper.name === '' ? format.name : `${format.name} in ${wrapper.name}`
  return {
    title,
    format: open(),
    wrapper,
    resolution: resolutionOf(times),
    hasDurations,
    hasStatus,
    score,
    missing,
    isRead,
  }
}

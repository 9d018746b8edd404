// npm run verify -- calendars [INSTANTS]: the boundaries that calendarWindow finds in every zone of the runtime, at so many
// instants a zone (10,000), beside those that another algorithm finds by the same offsets; none may differ. Then the offsets of the runtime
// beside the system's zoneinfo: the versions of both, and each zone in which they differ, which is no error.
import { existsSync, readFileSync } from 'node:fs'
import { calendarWindow } from '@sluice/calendar'
import { boundariesIn, offsetOf } from '@sluice/testing/internal'

const INSTANTS = Number(process.argv[2] ?? 10_000)
const EVERY = /** @type {const} */ (['day', 'week', 'month', 'quarter', 'year'])
const ANCHORS = [
  '2024-01-31',
  '2024-02-29',
  '2023-08-30T02:30',
  '2011-12-30T12:00',
  '2000-12-29T23:59:59',
  '1970-01-01',
]
const [FIRST, LAST] = [Date.UTC(1971), Date.UTC(2060)]
const YEAR_MS = 366 * 86_400_000
const ZONES = [...Intl.supportedValuesOf('timeZone'), 'UTC']
const ZONEINFO = '/usr/share/zoneinfo'

let compared = 0
/** @type {string[]} */
const differences = []
for (const [i, timeZone] of ZONES.entries()) {
  for (const [k, every] of EVERY.entries()) {
    const anchor = /** @type {string} */ (ANCHORS[(i + k) % ANCHORS.length])
    const all = boundariesIn(every, timeZone, anchor, FIRST - 3 * YEAR_MS, LAST + 3 * YEAR_MS)
    const { calendar } = calendarWindow({ limit: 1, every, timeZone, anchor })
    const step = Math.floor((5 * (LAST - FIRST)) / INSTANTS)
    for (let instant = FIRST + ((i * 7919 + k) % step); instant < LAST; instant += step) {
      const next = firstAfter(all, instant)
      const expected = all.slice(next - 2, next + 2)
      const found = calendar?.around(instant * 1000).map((at) => at / 1000)
      compared++
      if (String(found) === String(expected)) continue
      differences.push(
        `${timeZone}, ${every} from ${anchor}, at ${instant}: ${String(found)} and ${String(expected)}`,
      )
    }
  }
}
console.log(`${compared} instants in ${ZONES.length} zones: ${differences.length} differ`)
for (const difference of differences.slice(0, 20)) console.log(difference)

const system = existsSync(`${ZONEINFO}/tzdata.zi`)
  ? readFileSync(`${ZONEINFO}/tzdata.zi`, 'utf8').split('\n', 1)[0]
  : 'none'
const others = ZONES.filter((zone) => existsSync(`${ZONEINFO}/${zone}`)).flatMap((zone) => {
  const wrong = changesOf(`${ZONEINFO}/${zone}`).find(
    ([at, offset]) => offsetOf(zone, at * 1000) !== offset * 1000,
  )
  return wrong ? [`${zone} since ${new Date(1000 * wrong[0]).toISOString()}`] : []
})
console.log(
  `zone data: ${process.versions.tz} in Node, ${system} in ${ZONEINFO}: ${others.length} zones differ since 1970`,
)
for (const other of others) console.log(other)
process.exitCode = differences.length > 0 ? 1 : 0

/** The place of the first number behind `instant`, of numbers in order. @param {readonly number[]} all @param {number} instant */
function firstAfter(all, instant) {
  let [low, high] = [0, all.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (/** @type {number} */ (all[middle]) > instant) high = middle
    else low = middle + 1
  }
  return low
}

/**
 * The instants since 1970 at which a file of zoneinfo (RFC 9636) changes the offset, with the offset; both in seconds. @param {string} path
 * @returns {readonly (readonly [at: number, offset: number])[]}
 */
function changesOf(path) {
  const file = readFileSync(path)
  // The first block has 32 bits, and the second, with a header of its own, 64.
  const counts = (/** @type {number} */ from) =>
    Array.from({ length: 6 }, (_, i) => file.readUInt32BE(from + 20 + 4 * i))
  const [utc = 0, standard = 0, leaps = 0, times = 0, types = 0, letters = 0] = counts(0)
  const second = 44 + times * 5 + types * 6 + letters + leaps * 8 + standard + utc
  const many = counts(second)[3] ?? 0
  const from = second + 44
  return Array.from({ length: many }, (_, i) => {
    const at = Number(file.readBigInt64BE(from + 8 * i))
    const type = file.readUInt8(from + 8 * many + i)
    return /** @type {const} */ ([at, file.readInt32BE(from + 9 * many + 6 * type)])
  }).filter(([at]) => at >= 0)
}

import { performance } from 'node:perf_hooks'

/*
 * A process whose clocks are wrong: CALLER_CLOCK is by how many milliseconds, or 'frozen'. Imported before anything that
 * might keep a clock for itself.
 */
const { CALLER_CLOCK } = process.env

if (CALLER_CLOCK !== undefined) {
  const stands = CALLER_CLOCK === 'frozen'
  const offMs = stands ? 0 : Number(CALLER_CLOCK)
  const [RealDate, realHrtime] = [Date, process.hrtime.bigint]
  const realNow = performance.now.bind(performance)
  const start = { date: RealDate.now(), now: realNow(), hrtime: realHrtime() }
  const date = () => (stands ? start.date : RealDate.now() + offMs)
  const hrtime = () => (stands ? start.hrtime : realHrtime() + BigInt(offMs) * 1_000_000n)
  performance.now = () => (stands ? start.now : realNow() + offMs)
  globalThis.Date = class extends RealDate {
    constructor(...args: unknown[]) {
      super(...((args.length === 0 ? [date()] : args) as [number]))
    }
    static override now = date
  } as DateConstructor
  process.hrtime = Object.assign(
    ([seconds, nanos]: [number, number] = [0, 0]): [number, number] => {
      const since = hrtime() - BigInt(seconds) * 1_000_000_000n - BigInt(nanos)
      return [Number(since / 1_000_000_000n), Number(since % 1_000_000_000n)]
    },
    { bigint: hrtime },
  )
}

import { type Options, type Rule, ruleOf, type Shape, ticksOf } from '@sluice/testing/internal'

/**
 * The policies that the store has to decide by where units are served up to `ttl` milliseconds after they were booked, from the
 * table in docs/decisions/0008-leases.md; undefined where nothing is left to lease.
 */
export function bookedBy({ title, model }: Shape, options: Options, ttl: number): Rule | undefined {
  const rule = ruleOf(model, options)
  const { limit, window } = options
  if (title.startsWith('fixed-window') || options.refill === 'interval') return rule
  if (title.startsWith('sliding-log')) return ruleOf(model, { ...options, window: window + ttl })
  if (title.startsWith('sliding-window')) {
    const longer = divisible({ ...options, window: window + ttl }, model)
    if (options.count !== 'weighted') return ruleOf(model, longer)
    const least = Math.floor((limit * longer.window) / (longer.window + ttl))
    return least < 1 ? undefined : ruleOf(model, { ...longer, limit: least })
  }
  if (!model.capacity) throw new Error(`0008-leases.md does not say how ${title} is leased`)
  const left = Number(rule.capacity) - Math.ceil((limit * ttl) / window)
  return left < 1 ? undefined : ruleOf(model, { ...options, [model.capacity]: left })
}

/** The options with their window, in milliseconds, rounded up until it can be divided into the buckets evenly. */
function divisible(options: Options, model: Shape['model']): Options {
  const ticks = (options.window * 1000) / Number(ticksOf(model, options))
  const fits = ticks % (options.buckets ?? 10) === 0
  return fits ? options : divisible({ ...options, window: options.window + 1 }, model)
}

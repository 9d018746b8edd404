import type { Law } from './law.js'
import { judge } from './laws.js'
import type { Item, Plan } from './plan.js'
import type { Program } from './process.js'
import { simulate } from './simulation.js'

/** Leaves out events of a plan that are none of `kept`, in parts of half of them down to single ones, as long as it still breaks the law. */
export async function shrink(
  plan: Plan,
  program: Program,
  law: Law,
  kept: readonly Item[] = [],
): Promise<Plan> {
  const withKept = (items: readonly Item[]): Plan => ({
    ...plan,
    items: [...items, ...kept].toSorted((a, b) => a.at - b.at),
  })
  const breaks = async (smaller: Plan): Promise<boolean> => {
    const { broken } = judge(await simulate(smaller, program))
    return broken.some(([other]) => other === law)
  }
  let items = plan.items.filter((item) => !kept.includes(item))
  for (let size = Math.ceil(items.length / 2); size >= 1; size = size > 1 ? Math.ceil(size / 2) : 0) {
    for (let from = 0; from < items.length;) {
      const fewer = [...items.slice(0, from), ...items.slice(from + size)]
      if (await breaks(withKept(fewer))) items = fewer
      else from += size
    }
  }
  // Places at which nothing is done any more are left out too.
  const fewer = withKept(items)
  const atFewerPlaces = { ...fewer, places: 1 + Math.max(0, ...fewer.items.map(({ place }) => place)) }
  return atFewerPlaces.places < plan.places && (await breaks(atFewerPlaces)) ? atFewerPlaces : fewer
}

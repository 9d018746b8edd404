/** How pages are searched: a heading that is the word itself comes first, and excerpts are shown. */
export const SEARCH = {
  searchOptions: { fuzzy: 0.1, prefix: true, boost: { title: 10, titles: 1, text: 1 } },
}

/** Entries that are looked up by their names: interfaces, changes, and options of other packages. */
const LOOKED_UP = /\/(?:api\/|changelog\.|migrate\/#option-)/

/**
 * The hits of a search, the best guide before what is looked up, unless it hardly has the words.
 * @template {{ id: string, score: number }} Hit
 * @param {Hit[]} hits By their scores.
 */
export function ranked(hits) {
  const isGuide = (/** @type {Hit} */ { id }) => !LOOKED_UP.test(id) && !/\/(?:errors\.|decisions\/)/.test(id)
  const [first] = hits
  if (!first || !LOOKED_UP.test(first.id)) return hits
  const guide = hits.find((each) => each.score > first.score / 4 && isGuide(each))
  return guide ? [guide, ...hits.filter((each) => each !== guide)] : hits
}

/** What readers ask for, in their own words, by the section that answers: search reads it as a part of the heading. */
export const WORDS = {
  'README.md#sluice': 'getting started, quick start, install',
  'docs/benchmarks/README.md#benchmarks': 'performance, how fast',
  'site/pages/log.md': 'access log, nginx log, which limit do I need',
  'site/pages/playground.md': 'simulator, try a limit',
  'docs/outages.md#what-each-failure-looks-like': 'redis down, redis is dead, timeout',
  'docs/operations.md#failover': 'sentinel',
  'docs/anywhere.md#three-lines-each': 'next.js, nextjs, trpc, remix, sveltekit, lambda',
  'docs/recipes/README.md#serverless-and-at-the-edge': 'lambda, vercel, cloudflare',
  'docs/http.md#allowed-and-denied-callers': 'allow list, deny list, whitelist, blacklist, ban an address',
  'docs/http.md#behind-a-gateway': 'nginx, proxy, load balancer, cloudflare',
  'docs/http.md#headers-and-denials': 'rate limit headers, RateLimit-Policy',
  'docs/http.md#keys': 'by IP, by API key, keyGenerator',
  'docs/how-do-i.md#find-out-why-everybody-is-limited': 'why refused, why denied, all users share one limit',
  'docs/how-do-i.md#try-a-limit-before-it-denies-anybody': 'shadow mode, dry run, report only',
  'docs/how-do-i.md#unblock-one-caller': 'free a caller, reset a key',
  'docs/algorithms.md#fixedwindow': 'fixed window',
  'docs/algorithms.md#slidingwindow': 'sliding window',
  'docs/algorithms.md#calendarwindow': 'monthly quota, budget a month, billing day',
  'docs/algorithms.md#how-to-choose': 'which algorithm, limit and window',
  'site/generated/recipes/llm-budgets.md#recipe-llm-budgets': 'tokens per minute',
  'packages/core/README.md#penalties': 'penalty',
  'packages/core/README.md#bans': 'block a caller',
  'docs/testing.md#testing-your-own-app': 'fake timers, jest, vitest',
  'docs/metrics.md#names-and-labels-in-prometheus': 'prometheus, grafana',
  'docs/outbound-queue.md#a-queue-for-any-function': 'concurrency, p-limit',
  'docs/stores.md#engines': 'dynamodb, mongodb, mysql',
}

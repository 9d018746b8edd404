/** How pages are searched: a heading that is the word itself comes first, and excerpts are shown. */
export const SEARCH = {
  searchOptions: { fuzzy: 0.1, prefix: true, boost: { title: 10, titles: 1, text: 1 } },
}

/** What readers ask for, in their own words, by the section that answers: search reads it as a part of the heading. */
export const WORDS = {
  'docs/outages.md#what-each-failure-looks-like': 'redis down, redis is dead',
  'docs/operations.md#failover': 'sentinel',
  'docs/anywhere.md#three-lines-each': 'next.js, trpc, remix, sveltekit, lambda',
  'docs/recipes/README.md#serverless-and-at-the-edge': 'lambda, vercel, cloudflare',
  'docs/http.md#allowed-and-denied-callers': 'allow list, deny list, whitelist, blacklist, ban an address',
  'docs/http.md#behind-a-gateway': 'nginx, proxy, load balancer, cloudflare',
  'docs/http.md#headers-and-denials': 'rate limit headers, RateLimit-Policy',
  'docs/http.md#keys': 'by IP, by API key, keyGenerator',
  'docs/how-do-i.md#find-out-why-everybody-is-limited': 'why refused, why denied, all users share one limit',
  'docs/how-do-i.md#try-a-limit-before-it-denies-anybody': 'shadow mode, dry run, report only',
  'docs/how-do-i.md#unblock-one-caller': 'free a caller, reset a key',
  'docs/algorithms.md#calendarwindow': 'monthly quota, budget a month, billing day',
  'docs/algorithms.md#how-to-choose': 'which algorithm',
  'site/generated/recipes/llm-budgets.md#recipe-llm-budgets': 'tokens per minute',
  'docs/testing.md#testing-your-own-app': 'fake timers, jest, vitest',
  'docs/metrics.md#names-and-labels-in-prometheus': 'prometheus, grafana',
  'docs/outbound-queue.md#a-queue-for-any-function': 'concurrency, p-limit',
  'docs/stores.md#engines': 'dynamodb, mongodb, mysql',
}

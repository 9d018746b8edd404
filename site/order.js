// The order of the pages, by what readers come for. A page of docs that has no place here fails the build.

/** The parts of the site with their files, or all of a folder: `docs/migrate/*`. */
export const ORDER = Object.entries({
  Start: `README.md docs/how-do-i.md docs/README.md docs/http.md packages/express/README.md packages/fastify/README.md
    packages/hono/README.md packages/koa/README.md packages/nest/README.md
    docs/clients.md docs/anywhere.md docs/recipes/README.md docs/testing.md packages/testing/README.md`,
  Choose:
    'site/pages/playground.md site/pages/log.md docs/algorithms.md packages/calendar/README.md docs/cli.md packages/cli/README.md packages/policies/README.md',
  'Come over': 'docs/migrate/README.md docs/migrate/*',
  Run: `docs/operations.md docs/which-redis.md docs/closing.md docs/outages.md docs/scaling.md docs/sizing.md docs/machine.md packages/machine/README.md
    packages/postgres/README.md docs/metrics.md packages/metrics/README.md docs/change-a-limit.md docs/runbook.md`,
  Outbound: `docs/outbound.md packages/outbound/README.md docs/outbound-clients.md docs/outbound-queue.md`,
  Reference: `site/generated/headers.md docs/errors.md docs/glossary.md packages/core/README.md
    packages/http/README.md docs/stores.md docs/api/README.md`,
  Why: 'docs/internals.md docs/decisions/README.md docs/decisions/* docs/benchmarks/README.md docs/benchmarks/* docs/survivors.md CHANGELOG.md',
}).map(([title, files]) => ({ title, pages: files.split(/\s+/) }))

/** Pages without a place in the navigation. */
export const UNLISTED = [
  'site/pages/index.md',
  'docs/api/*',
  'site/generated/recipes/*',
  'site/generated/playground/*',
]

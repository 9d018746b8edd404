import type { Adapter } from './adapter.js'

/** Whether each denial of the kit names its caller by an id. `npm test` runs the kit without, as most applications are. */
const WITH_IDS = process.env.KIT_DENIAL_IDS !== 'none'

/** All that differs in an answer then: a further member of its problem details. */
export const INSTANCE = WITH_IDS ? { instance: 'urn:sluice:denial:of-the-kit' } : {}

/** The adapter, whose every limit has the option `denialId` unless a case brings its own. */
export function withDenialIds<Req, Res>(adapter: Adapter<Req, Res>): Adapter<Req, Res> {
  if (!WITH_IDS) return adapter
  const denialId = (): string => 'of-the-kit'
  return {
    ...adapter,
    serve: ({ routes, ...app }) =>
      adapter.serve({
        ...app,
        routes: routes.map(({ limits, ...route }) => ({
          ...route,
          limits: limits.map((limit) => ({ denialId, ...limit })),
        })),
      }),
  }
}

import type { Report } from '../store.js'
import type { Bytes, RedisConnection } from './redis-connection.js'

/**
 * Finds out whether Redis forgets keys when its memory is full, and warns every limiter of the store about it: whoever
 * floods it with keys sets exhausted callers free.
 *
 * Asked once, by a script, which every client can send and every Cluster node can run. A user that may not read INFO
 * is not warned.
 */
export class EvictionCheck {
  readonly #connection: RedisConnection
  readonly #key: Buffer
  readonly #reports = new Set<Report>()
  #asked = false
  #evicts = false

  /** `key` is one that the store's user may name. It is not touched. */
  constructor(connection: RedisConnection, key: string) {
    this.#connection = connection
    this.#key = Buffer.from(key)
  }

  /** Warns through `report`, now or as soon as it is known. */
  warn(report: Report): void {
    if (this.#evicts) report({ event: 'warning', ...EVICTS })
    else this.#reports.add(report)
  }

  /** Call it when Redis has answered. */
  ask(): void {
    if (this.#asked) return
    this.#asked = true
    this.#connection.eval(READ, [this.#key], [this.#key]).then(
      (reply) => this.#hear(Buffer.from(reply as Bytes).toString()),
      () => {},
    )
  }

  #hear(policy: string): void {
    this.#evicts = policy !== '' && policy !== 'noeviction'
    if (this.#evicts) for (const report of this.#reports) report({ event: 'warning', ...EVICTS })
    this.#reports.clear()
  }
}

/** The policy, or nothing where there is no bound on memory or INFO may not be read. */
const READ = `
local info = redis.pcall('INFO', 'memory')
if type(info) ~= 'string' or string.find(info, '\\nmaxmemory:0\\r') then
  return ''
end
return string.match(info, 'maxmemory_policy:([a-z-]+)') or ''
`

const EVICTS = {
  code: 'REDIS_EVICTS',
  message:
    'Redis evicts keys when its memory is full, so a flood of keys sets exhausted callers free: set ' +
    'maxmemory-policy to noeviction, or keep limits on a server of their own',
}

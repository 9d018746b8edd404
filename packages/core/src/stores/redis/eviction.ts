import type { Report } from '../store.js'
import type { RedisConnection } from './redis-connection.js'

/**
 * Checks whether Redis evicts keys when its memory is full, and warns every limiter of the store if so: a flood of keys would
 * then set exhausted callers free.
 *
 * Checked once, by a script, which every client can send and every Cluster node can run. Without permission to read INFO
 * there is no warning.
 */
export class EvictionCheck {
  /** Callbacks of limiters waiting for the check; undefined once it is done. */
  #reports: Set<Report> | undefined = new Set()
  #evicts = false

  /**
   * Prepares the check whether Redis evicts keys when its memory is full. `key` is any key that the store's user may access: a
   * script must name one, and it is neither read nor written.
   */
  constructor(
    readonly connection: RedisConnection,
    readonly key: Buffer,
  ) {}

  /**
   * Warns a limiter, through `report`, if Redis evicts keys when its memory is full: now if that is known, once Redis has
   * answered if the check is still to come, and not at all if Redis evicts none.
   */
  warn(report: Report): void {
    if (this.#evicts) report({ event: 'warning', ...EVICTS })
    else this.#reports?.add(report)
  }

  /**
   * Asks Redis for its eviction policy. Is called after the first reply of Redis, when there surely is a connection. A failure,
   * such as a missing permission, counts as an unknown policy: no warning.
   */
  ask(): void {
    this.connection.eval(READ, [this.key], [this.key]).then(
      (reply) => this.#received(String(reply)),
      () => this.#received(''),
    )
  }

  /**
   * Keeps whether Redis evicts keys under this eviction policy, as it has answered; '' stands for memory without a bound, or an
   * unknown policy. If it does, warns the limiters that wait for the answer (`#reports`).
   */
  #received(policy: string): void {
    this.#evicts = policy !== '' && policy !== 'noeviction'
    const reports = this.#reports
    this.#reports = undefined
    if (this.#evicts) reports?.forEach((report) => report({ event: 'warning', ...EVICTS }))
  }
}

/** Returns the eviction policy, or an empty string if memory is not bounded or INFO may not be read. */
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
    'Redis evicts keys when its memory is full, which sets exhausted callers free: set maxmemory-policy to noeviction',
}

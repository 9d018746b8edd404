import { InputError } from './errors.js'
import { isPromise } from './promises.js'
import { warnProcess } from './process-warning.js'

export interface ListenOptions {
  /**
   * For listeners that only count: a 'warning' is then still written as a warning of the process.
   * @default false
   */
  readonly passive?: boolean
}

/**
 * Listeners by the name of their event. Not Node's EventEmitter, because limiters also run elsewhere. A listener that throws
 * or rejects affects neither its caller nor the other listeners.
 */
export class Listeners<Events extends object> {
  /** The listeners of each event that has some. Lists are replaced and never changed, so that a listener may remove itself. */
  readonly heard: { [E in keyof Events]?: readonly ((event: Events[E]) => void)[] | undefined } = {}
  readonly #passive = new WeakSet<object>()

  /** `names` are those of the events; `failed` is called with what a listener threw, or rejected with. */
  constructor(
    readonly names: readonly (keyof Events)[],
    readonly failed: (name: keyof Events, error: unknown) => void,
  ) {}

  /**
   * Adds a listener to the event `name`, unless it is there already. Returns a function that removes it. A `passive` listener
   * only counts: an event with no other listeners is still reported as unheard (`hasActive`).
   * @throws {InputError} INVALID_OPTION for an event that does not exist.
   */
  on<E extends keyof Events>(
    name: E,
    listener: (event: Events[E]) => void,
    { passive = false }: ListenOptions = {},
  ): () => void {
    if (!this.names.includes(name))
      throw new InputError(
        'INVALID_OPTION',
        `there is no event '${String(name)}', but ${this.names.join(', ')}`,
      )
    const list = this.heard[name] ?? []
    if (passive) this.#passive.add(listener)
    if (!list.includes(listener)) this.#set(name, [...list, listener])
    return () => this.#set(name, this.heard[name]?.filter((other) => other !== listener) ?? [])
  }

  /**
   * Replaces the list of an event's listeners. An empty list becomes undefined, by which emitters see that no event need be made.
   */
  #set<E extends keyof Events>(name: E, list: readonly ((event: Events[E]) => void)[]): void {
    this.heard[name] = list.length === 0 ? undefined : list
  }

  /** Whether an event has a listener that does more than count: one that was not added as `passive`. */
  hasActive(name: keyof Events): boolean {
    return this.heard[name]?.some((listener) => !this.#passive.has(listener)) ?? false
  }

  /**
   * Calls the listeners of the event `name` with `event`, in the order in which they were added. What a listener throws, or
   * rejects with later, goes to `failed`, and affects neither the caller nor the other listeners.
   */
  emit<E extends keyof Events>(name: E, event: Events[E]): void {
    const list = this.heard[name]
    if (!list) return
    for (let i = 0; i < list.length; i++) {
      try {
        const returned: unknown = list[i]!(event)
        if (isPromise(returned)) Promise.resolve(returned).catch((error: unknown) => this.failed(name, error))
      } catch (error) {
        this.failed(name, error)
      }
    }
  }
}

/**
 * Makes the function that handles failures of listeners, for an object (`owner` names it) that has no warnings of its own: the
 * first failure is written as a warning of the process, all later ones are ignored.
 */
export function warningOnce(owner: string): (name: PropertyKey, error: unknown) => void {
  let hasWarned = false
  return (name, error) => {
    if (hasWarned) return
    hasWarned = true
    warnProcess('LISTENER_FAILED', `${owner}: a listener of '${String(name)}' threw: ${String(error)}`)
  }
}

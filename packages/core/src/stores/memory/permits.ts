import type { Permits, TicketState } from '../store.js'

/** The permits of all semaphores in this process, by name and key. A key without tickets takes no memory. */
export class MemoryPermits {
  readonly #queues = new Map<string, PermitQueue>()

  /** The permits of one semaphore. */
  of(name: string): Permits {
    const tickets = new Map<number, Ticket>()
    const semaphore = { limit: 0 }
    const queues = this.#queues
    let granted: ((ticket: number) => void) | undefined

    const idOf = (key: string): string => `${name}\n${key}` // names have no line breaks
    const stateOf = (ticket: number): TicketState => {
      const known = tickets.get(ticket)
      return known ? (known.isHeld ? 'held' : 'waiting') : 'unknown'
    }
    const release = (key: string, ticket: number): void => {
      const known = tickets.get(ticket)
      const queue = queues.get(idOf(key))
      if (!known || !queue) return
      tickets.delete(ticket)
      if (known.isHeld) queue.held--
      else queue.waiting.delete(known)
      serve(queue)
      if (queue.held === 0 && queue.waiting.size === 0) queues.delete(idOf(key))
    }

    return {
      take(key, ticket, limit, waits) {
        semaphore.limit = limit
        const queue: PermitQueue = queues.get(idOf(key)) ?? { held: 0, waiting: new Set() }
        const isFree = queue.held < limit && queue.waiting.size === 0
        if (!isFree && !waits) return false
        const taken: Ticket = { semaphore, isHeld: isFree, report: () => granted?.(ticket) }
        if (isFree) queue.held++
        else queue.waiting.add(taken)
        queues.set(idOf(key), queue)
        tickets.set(ticket, taken)
        return isFree
      },
      poll(key, polled, limit) {
        semaphore.limit = limit
        const queue = queues.get(idOf(key))
        if (queue) serve(queue)
        return polled.map(stateOf)
      },
      renew: (_key, renewed) => renewed.map(stateOf),
      release(key, released) {
        for (const ticket of released) release(key, ticket)
      },
      listen(listener) {
        granted = listener
      },
      close() {
        granted = undefined
      },
    }
  }
}

interface PermitQueue {
  held: number
  /** Oldest first. */
  readonly waiting: Set<Ticket>
}

interface Ticket {
  /** Its own, with the limit of its latest call: semaphores of one name may have different limits. */
  readonly semaphore: { readonly limit: number }
  isHeld: boolean
  readonly report: () => void
}

/** Grants free permits to the oldest tickets. Reports come last, because each of them leads to a poll of the queue. */
function serve(queue: PermitQueue): void {
  const granted: Ticket[] = []
  for (const ticket of queue.waiting) {
    if (queue.held >= ticket.semaphore.limit) break
    queue.waiting.delete(ticket)
    queue.held++
    ticket.isHeld = true
    granted.push(ticket)
  }
  for (const ticket of granted) ticket.report()
}

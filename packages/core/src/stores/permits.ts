/*
 * Permits are the part of a store that semaphores use. For each name and key there are permits, and one queue of tickets
 * that wait for one. A ticket is a number that its semaphore never uses twice: it holds a permit, waits in the queue, or is
 * unknown to the store.
 *
 * Each semaphore has a limit of its own. A ticket gets a permit once it is the oldest that waits and fewer permits of the
 * key are held, by whichever semaphores, than its own semaphore's limit. Until then it delays all tickets behind it, also
 * those under a higher limit: these could pass it for ever. A lowered limit takes no permit back.
 *
 * A store in this process (`local`) keeps tickets until they are released. Elsewhere a semaphore may die, so its tickets
 * are forgotten unless it repeats its steps within the times below, in microseconds on the store's clock.
 */

/** The permits of one semaphore of a process. */
export interface Permits {
  /**
   * Carries out one step on tickets of a key and returns their states after it. Free permits are granted in the same step.
   * `limit` is the semaphore's own.
   * - `take`: an unknown ticket gets a permit if fewer than `limit` are held and no ticket waits.
   * - `wait`: the same, but otherwise the ticket enters the queue. The limit holds for all tickets of the semaphore there.
   * - `poll`: keeps the semaphore's tickets in the queue. The limit holds for all of them.
   * - `renew`: a ticket without a permit gets one before all that wait if fewer than `limit` are held: the store lost it.
   * - `release`: permits are free again, and waiting tickets leave the queue. Uses no limit.
   *
   * Every step but `release` renews the lease of those of its tickets that hold a permit. `take` and `wait` are for one ticket.
   */
  ask(step: PermitStep, key: string, tickets: readonly number[], limit: number): TicketStates
  /** Calls `granted` with each waiting ticket that gets a permit. Such a message may be lost; `poll` is authoritative. */
  listen(granted: (ticket: number) => void): void
  /** Ends `listen`. Held permits stay held. */
  close(): void
}

/** The steps and states, in the order of their numbers outside this process. */
export const PERMIT_STEPS = ['take', 'wait', 'poll', 'renew', 'release'] as const
export const TICKET_STATES = ['unknown', 'waiting', 'held'] as const

export type PermitStep = (typeof PERMIT_STEPS)[number]
export type TicketState = (typeof TICKET_STATES)[number]
/** One for each ticket that was asked about, in their order. */
export type TicketStates = readonly TicketState[] | Promise<readonly TicketState[]>

/** Waiting tickets of a semaphore without a `wait` or `poll` in this time delay no others and may leave the queue. */
export const ALIVE_US = 1_000_000

/** A permit that a waiting ticket got is free again after this time, whatever its lease, unless a step renews it. */
export const CLAIM_US = 2_000_000

/** After a loss of state no permits are granted for this time but by `renew`, so that every holder comes first. */
export const GRACE_US = 700_000

/** Longest time between two renewals by a holder; shorter than the time of grace. */
export const RENEW_US = 500_000

/** Most tickets of one call, because a script blocks all other clients. */
export const MOST_TICKETS = 100

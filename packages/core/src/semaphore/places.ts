import type { MaybePromise } from '../stores/store.js'
import type { StoreCalls } from './store-calls.js'

/**
 * What a semaphore needs of a store: for each key some places, and a line of tickets, served in the order in which
 * they came. A ticket is a number that its semaphore never gives out twice.
 */
export interface Places {
  /**
   * Takes a place if one of `limit` is free and nobody is in line. If not, the ticket gets in line where `wait` says
   * so, and its place is reported later. True: it has a place.
   */
  take(key: string, ticket: number, limit: number, wait: boolean): MaybePromise<boolean>
  /** Gives back a ticket's place, or where it stands in line. The place goes to the oldest ticket. */
  leave(key: string, ticket: number): MaybePromise<void>
  /** Another limit for all keys, also for tickets in line. */
  resize(limit: number): void
  /** Why the store did not answer when it was last asked; undefined where it did. */
  readonly failure: unknown
  /** Reports nothing any more. Places that are held stay held until they are given back. */
  close(): void
}

export interface PlacesOptions {
  /** Semaphores of one name share their places. */
  readonly name: string
  /** How long a place stays taken whose holder is not heard of, in milliseconds. */
  readonly leaseMs: number
  /** For a store elsewhere: every call goes through it. */
  readonly calls: StoreCalls
  /** A ticket in line got a place, or one that had a place lost it. Told outside of calls, and inside of `leave`. */
  readonly report: (ticket: number, change: 'granted' | 'lost') => void
}

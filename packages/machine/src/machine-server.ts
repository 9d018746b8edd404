import type { PermitCall } from '@sluice/core/internal'
import type {
  Answer,
  Ask,
  Booking,
  Caller,
  Correction,
  MaybePromise,
  Notice,
  RecordChanges,
  ReservationChange,
  ReservationEffect,
  ReserveCall,
  TicketStates,
} from '@sluice/core/store'
import type { RecordRequest } from './machine-records.js'
import type { WirePolicies } from './wire-policies.js'

/** The server of a machine's state, as one process reaches it: this process itself, or another one. */
export interface MachineServer {
  /** A random number for each server. State that was made under another one is lost. */
  readonly epoch: number
  decide(list: WirePolicies, call: MachineCall): MaybePromise<Answer>
  /** Charges every part that fits, or none if an enforced one does not. */
  together(parts: readonly MachinePart[], caller?: Caller): MaybePromise<readonly Answer[]>
  confirm(list: WirePolicies, booking: MachineBooking): MaybePromise<'stands' | 'lost' | 'held'>
  cancel(list: WirePolicies, booking: MachineBooking): MaybePromise<boolean>
  correct(list: WirePolicies, correction: Correction, caller?: Caller): MaybePromise<number>
  reserve(list: WirePolicies, call: ReserveCall, caller?: Caller): MaybePromise<Answer>
  change(list: WirePolicies, change: ReservationChange, caller?: Caller): MaybePromise<ReservationEffect>
  permits(call: PermitCall): TicketStates
  records(request: RecordRequest): MaybePromise<RecordChanges | null>
  /** Ends the connection, or the serving. Calls without an answer reject with `error`. */
  close(error: Error): void
}

/** A call to decide, with the arguments of `Keyspace.decide`. */
export interface MachineCall {
  readonly ask: Ask
  readonly key: string
  readonly cost: number
  readonly maxWait: number
  readonly caller: Caller | undefined
}

/** A part of a call on several keys. */
export interface MachinePart {
  readonly list: WirePolicies
  readonly key: string
  readonly cost: number
  readonly enforce: boolean
}

/** A booking, which is known to its server by a number. */
export interface MachineBooking extends Booking {
  readonly epoch: number
  readonly number: number
  isCancelled: boolean
}

/** Receives what a server says without being asked. */
export interface ServerListener {
  /** A notice about a key of the limiter `name`, caused by a call of this process. */
  notice(name: string, notice: Notice): void
  granted(semaphore: number, ticket: number): void
  /** The server has ended, or the connection to it. */
  ended(server: MachineServer): void
}

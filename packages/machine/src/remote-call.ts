import { StoreError } from '@sluice/core'
import { REASONS } from '@sluice/core/internal'
import type { Answer, Caller } from '@sluice/core/store'
import type { Frame, FrameWriter } from './frames.js'
import { MalformedFrame } from './frames.js'
import type { MachineBooking } from './machine-server.js'

/** One call to a server elsewhere. */
export interface RemoteCall {
  readonly caller: Caller | undefined
  write(writer: FrameWriter): void
  answer(reply: Frame): void
  fail(error: unknown): void
}

/** A call whose result `read` takes from a reply of one kind. */
export function remoteCall<T>(
  send: (call: RemoteCall) => void,
  caller: Caller | undefined,
  write: (writer: FrameWriter) => void,
  kind: number,
  read: (reply: Frame) => T,
): Promise<T> {
  return new Promise((resolve, fail) => {
    const answer = (reply: Frame): void => {
      if (reply.kind !== kind) throw new MalformedFrame(`a reply of kind ${reply.kind} in place of ${kind}`)
      resolve(read(reply))
    }
    send({ caller, write, answer, fail })
  })
}

/** The answer in a reply. */
export function answerIn({ tag, numbers }: Frame, life: number, key: string, cost: number): Answer {
  if (numbers.length < 5) throw new MalformedFrame(`an answer of ${numbers.length} numbers`)
  const [now, at, remaining, resetAt, last] = numbers as [number, number, number, number, number]
  const reason = REASONS[tag & 7]
  const binding = tag >> 3
  const parts = numbers.length > 5 ? numbers.slice(5) : undefined
  const answer = { now, at, reason, binding, remaining, resetAt, parts, booking: undefined }
  if (reason !== undefined) return { ...answer, nextUnitAt: last }
  if (last === 0) return answer
  const booking: MachineBooking = { key, at, cost, decidedAt: now, life, number: last, isCancelled: false }
  return { ...answer, booking }
}

/** The call was never written, so it was not carried out. */
export function notSent(why: string): StoreError {
  return new StoreError('STORE_UNAVAILABLE', why, { sent: false })
}

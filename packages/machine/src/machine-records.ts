import type { MaybePromise, RecordChanges, Records } from '@sluice/core/store'

/** What a client asks of the records: JSON, in the frame of a request. */
export type RecordRequest = readonly [name: 'write' | 'read', ...given: readonly unknown[]]

/**
 * The text of a request: all of Latin-1, so that a frame has room for the longest key, which is JSON in JSON and would take twice as
 * much in UTF-16.
 */
export function textOf(request: RecordRequest): string {
  const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(request).replaceAll(/[^\0-\xff]/g, escaped)
}

/** Carries out a request on the records of the machine. Null for a write whose group is full, as JSON has no undefined. */
export function carryOutOn(records: Records, [name, first, second]: RecordRequest): RecordChanges | null {
  if (name === 'read') return records.read(first as number, second as readonly string[]) as RecordChanges
  const written = records.write(first as Parameters<Records['write']>[0], second as number)
  return (written ?? null) as RecordChanges | null
}

/** The records of operators about single keys, which the server of the machine keeps in its memory store. */
export function machineRecords(access: ReachedServer): Records {
  return {
    write: async (record, since) =>
      (await access.ask((server) => server.records(['write', record, since]))) ?? undefined,
    // At once in the process that serves.
    read: (since, applied) =>
      access.ask((server) => server.records(['read', since, applied])) as MaybePromise<RecordChanges>,
  }
}

/** The way to the server that is reached now. */
interface ReachedServer {
  ask<T>(
    act: (server: { records(request: RecordRequest): MaybePromise<RecordChanges | null> }) => MaybePromise<T>,
  ): MaybePromise<T>
}

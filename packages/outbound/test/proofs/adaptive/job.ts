export const kinds = ['known', 'adaptive', 'AIMD', 'replies alone', 'bottleneck', 'p-queue'] as const
export type Kind = (typeof kinds)[number]

/** Calls of a fleet of which each process knows, or searches, a rate or a number of calls at once. */
export interface AdaptiveJob {
  readonly kind: Kind
  readonly unknown: 'rate' | 'calls at once'
  /** The limit of the provider, for the fleet that knows it: calls a second, or at once. */
  readonly limit: number
  readonly redis: { readonly host: string; readonly port: number }
  readonly origin: string
  readonly callers: number
  readonly forMs: number
}

export interface AdaptiveReport {
  /** Calls that ended with a refusal or an error. */
  readonly unserved: number
}

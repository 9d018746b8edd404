export const kinds = ['sluice', 'bottleneck', 'bottleneck reservoir', 'p-queue', 'p-throttle'] as const
export type Kind = (typeof kinds)[number]

/** What a worker that limits itself by one of the libraries is to do. */
export interface PeerJob {
  readonly kind: Kind
  readonly redis: { readonly host: string; readonly port: number }
  readonly origin: string
  /** Of the whole fleet, in `windowMs`. */
  readonly limit: number
  readonly windowMs: number
  readonly workers: number
  readonly callers: number
  /** How long a caller pauses after each call. */
  readonly thinkMs: number
  readonly forMs: number
}

export interface PeerReport {
  /** Of the process while it worked, calls over HTTP included, in milliseconds. */
  readonly cpuMs: number
}

/** A request that a client is about to send. */
export interface OutboundRequest {
  readonly url: URL
  /** In upper case. */
  readonly method: string
  /** The value of a header, by its name in lower case. */
  header(name: string): string | undefined
}

/** The parts of a response that say when to send the next request. */
export interface OutboundReply {
  readonly status: number
  /** The address that replied, if the client reports it: after a redirect not that of the request. */
  readonly url?: string | undefined
  /** The value of a header, by its name in lower case. */
  header(name: string): string | undefined
}

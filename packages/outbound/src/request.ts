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
  /** The names of its headers. Without them each header that may say something is asked for. */
  names?(): Iterable<string> | undefined
  /**
   * Reads the body, which the caller gets untouched all the same. Undefined unless it is JSON of up to 64 KiB that arrives within a
   * second, and the reply has a status of 400 or more, states its Content-Length, or the option `readBody` has all be read. Absent
   * in a reply that `pauseMsOf` is given.
   */
  json?(): Promise<unknown>
}

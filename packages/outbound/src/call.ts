/** A call that is about to go out, in whatever client. */
export interface Call {
  readonly url: URL
  /** In capital letters. */
  readonly method: string
  /** The value of a header, by its name in small letters. */
  header(name: string): string | undefined
}

/** What came back, as far as it says when to call again. */
export interface Reply {
  readonly status: number
  /** The address that answered, where it is known: another one after a redirect. */
  readonly url?: string | undefined
  /** The value of a header, by its name in small letters. */
  header(name: string): string | undefined
}

import type { Server } from 'node:net'

/** Where the processes of one store meet. */
export interface MeetingPoint {
  /**
   * The address of the newest server, which may have ended; undefined if there was none.
   * @throws an error of the file system, or PolicyError if others could change what lies there.
   */
  newest(): string | undefined
  /** Listens, and becomes the newest after `former`. Undefined if another process was faster. */
  claim(listener: Server, former: string | undefined): Promise<Claim | undefined>
}

export interface Claim {
  /**
   * Whether no server came after this one, as far as it can be seen now. To be asked from time to time: somebody may delete the
   * files.
   */
  isNewest(): boolean
}

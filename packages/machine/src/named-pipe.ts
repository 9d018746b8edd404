import { once } from 'node:events'
import type { Server } from 'node:net'
import type { Claim, MeetingPoint } from './meeting-point.js'

/** A named pipe of Windows. It ends with its process, and the system lets one process alone make it. */
export class NamedPipe implements MeetingPoint {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  newest(): string {
    return this.#path
  }

  async claim(listener: Server): Promise<Claim | undefined> {
    listener.listen({ path: this.#path, exclusive: true })
    try {
      await once(listener, 'listening')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined
      throw error
    }
    return { isNewest: () => true }
  }
}

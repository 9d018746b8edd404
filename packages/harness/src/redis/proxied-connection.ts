import { connect, type Socket } from 'node:net'
import type { Address } from './command.js'

export type Direction = 'to-server' | 'to-client'

/** The settings that every connection reads before it acts. */
export interface Faults {
  readonly latencyMs: Record<Direction, number>
  held: boolean
  cutsLeft: number
  /** The name of the command at which a connection is reset every second time. */
  cutOnCall: string | undefined
  isNextCut: boolean
}

type Counts = Record<'toServer' | 'toClient' | 'cuts', number>

/** One connection through the proxy: two sockets, and a lane between them in each direction. */
export class ProxiedConnection {
  readonly #sockets: readonly [Socket, Socket]
  readonly #lanes: readonly [Lane, Lane]

  constructor(client: Socket, target: Address, faults: Faults, counts: Counts, onClose: () => void) {
    const server = connect({ port: target.port, host: target.host, noDelay: true })
    this.#sockets = [client, server]
    const toServer = new Lane(server, faults, () => faults.latencyMs['to-server'])
    const toClient = new Lane(client, faults, () => faults.latencyMs['to-client'])
    this.#lanes = [toServer, toClient]
    client.on('data', (chunk) => {
      if (this.#isCut(chunk, faults)) {
        counts.cuts++
        this.reset()
      } else toServer.push(chunk, () => (counts.toServer += chunk.length))
    })
    server.on('data', (chunk) => {
      if (faults.cutsLeft > 0) {
        faults.cutsLeft--
        counts.cuts++
        this.reset()
      } else toClient.push(chunk, () => (counts.toClient += chunk.length))
    })
    client.on('close', () => toServer.finish())
    server.on('close', () => toClient.finish())
    for (const socket of this.#sockets) {
      socket.unref()
      socket.on('error', () => {})
      socket.on('close', () => this.#sockets.every(({ destroyed }) => destroyed) && onClose())
    }
  }

  /** Whether to reset the connection, as it sends a command of the name at which every second time it is to be cut. */
  #isCut(chunk: Buffer, faults: Faults): boolean {
    const name = faults.cutOnCall
    if (name === undefined || !chunk.toString('latin1').toLowerCase().includes(`\r\n${name}\r\n`))
      return false
    faults.isNextCut = !faults.isNextCut
    return !faults.isNextCut
  }

  /** Sends what was held, or with `reset` gives the connection up if something was. */
  release(reset: boolean): void {
    if (reset && this.#lanes.some((lane) => lane.waiting)) this.reset()
    else this.#lanes.forEach((lane) => lane.flush())
  }

  /** Drops what is on its way and resets both sockets, so that each side sees the connection break. */
  reset(): void {
    this.#lanes.forEach((lane) => lane.clear())
    this.#sockets.forEach((socket) =>
      socket.readyState === 'open' ? socket.resetAndDestroy() : socket.destroy(),
    )
  }
}

/** Bytes on their way to one socket, in order, each with the moment from which it may leave. */
class Lane {
  #queue: { readonly dueMs: number; readonly leave: () => void }[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(
    readonly to: Socket,
    readonly faults: Faults,
    readonly latencyMs: () => number,
  ) {}

  /** Whether bytes, or the end of the other side, have not left yet. */
  get waiting(): boolean {
    return this.#queue.length > 0
  }

  /** Sends bytes after those before them and after the latency. `onPassed` is called when they leave. */
  push(chunk: Buffer, onPassed: () => void): void {
    this.#enqueue(() => {
      onPassed()
      if (!this.to.destroyed) this.to.write(chunk)
    })
  }

  /** Notes that the other side has closed: this one is closed too, after the bytes that are on their way. */
  finish(): void {
    this.#enqueue(() => this.to.destroySoon())
  }

  /** Sends what is due, and sets a timer for what is not yet. Sends nothing while connections are held. */
  flush(): void {
    clearTimeout(this.#timer)
    while (!this.faults.held && this.#queue[0]) {
      const waitMs = this.#queue[0].dueMs - performance.now()
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.flush(), waitMs).unref()
        return
      }
      this.#queue.shift()!.leave()
    }
  }

  /** Drops what is on its way. */
  clear(): void {
    clearTimeout(this.#timer)
    this.#queue = []
  }

  /** Puts something behind what is on its way; `leave` is called when the latency is over and everything before has left. */
  #enqueue(leave: () => void): void {
    this.#queue.push({ dueMs: performance.now() + this.latencyMs(), leave })
    this.flush()
  }
}

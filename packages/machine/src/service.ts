import { createServer, type Server, type Socket } from 'node:net'
import type { Host } from './host.js'
import { Session } from './session.js'

/** Serves a host's state to other processes. None of its handles keeps the process alive. */
export class Service {
  readonly listener: Server
  readonly #sockets = new Set<Socket>()
  readonly #host: Host
  readonly #name: string

  /** `name` is that of the store. */
  constructor(host: Host, name: string) {
    this.#host = host
    this.#name = name
    this.listener = createServer((socket) => this.#serve(socket))
    this.listener.on('error', () => {}) // of connections that could not be accepted
  }

  /** Ends all connections, stops listening and closes the host. */
  close(): void {
    this.listener.close()
    for (const socket of this.#sockets) socket.destroy()
    this.#host.close()
  }

  #serve(socket: Socket): void {
    const session = new Session(this.#host, this.#name, socket)
    this.#sockets.add(socket)
    socket.unref()
    socket.on('data', (chunk) => session.receive(chunk))
    socket.on('error', () => {}) // 'close' follows
    socket.on('close', () => {
      // When the service itself has ended, there is nothing to give back.
      if (this.#sockets.delete(socket) && this.listener.listening) this.#host.left(session)
    })
  }
}

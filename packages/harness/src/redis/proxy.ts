import { createServer, type Server, type Socket } from 'node:net'
import type { Address } from './command.js'
import { freePort } from './free-port.js'
import { type Direction, type Faults, ProxiedConnection } from './proxied-connection.js'
import { HOST } from './redis-server.js'

/** A TCP proxy in front of a server that can do what networks do. It keeps no process alive. */
export interface Proxy extends Address {
  /** Connections accepted, those open now, bytes passed on, and replies cut off. */
  readonly counts: Readonly<Record<'connections' | 'open' | 'toServer' | 'toClient' | 'cuts', number>>
  /** Delays what arrives from now on, in one direction or in both. */
  latency(ms: number, direction?: Direction): void
  /** Nothing passes and nothing closes, new connections included, until `heal`. */
  blackHole(): void
  /** Swallows the next reply and destroys its connection; `times` how often, Infinity until `heal`. */
  cutOnReply(times?: number): void
  /** Resets a connection as soon as it sends a command of this name, before the server has it: every second time, until `heal`. */
  cutOnCall(name: string): void
  /** Passes connections that are made from now on to another server, as a name or a Service that points elsewhere; those that are open stay. */
  pointTo(target: Address): void
  /** Resets every connection and refuses new ones, as when nothing listens there. */
  refuse(): Promise<void>
  /** Ends all faults. Bytes held by a black hole pass now, late and in order, as TCP does after a partition;
   * with `reset`, connections that hold some are reset instead. */
  heal(options?: { reset?: boolean }): Promise<void>
  close(): Promise<void>
}

/** Starts a proxy on a free port that passes everything on to the server `first` until it is given a fault. */
export async function startProxy(first: Address): Promise<Proxy> {
  let target = first
  const faults: Faults = { ...NONE, latencyMs: { ...NONE.latencyMs } }
  const counts = { connections: 0, open: 0, toServer: 0, toClient: 0, cuts: 0 }
  const open = new Set<ProxiedConnection>()
  const resetAll = () => open.forEach((connection) => connection.reset())
  const accept = (client: Socket) => {
    const connection = new ProxiedConnection(client, target, faults, counts, () => {
      open.delete(connection)
      counts.open = open.size
    })
    open.add(connection)
    counts.connections++
    counts.open = open.size
  }
  const server = createServer({ noDelay: true }, accept)
  const port = await listenSomewhere(server)

  return {
    host: HOST,
    port,
    counts,
    latency(ms, direction) {
      for (const way of direction ? [direction] : (['to-server', 'to-client'] as const)) {
        faults.latencyMs[way] = ms
      }
    },
    blackHole() {
      faults.held = true
    },
    cutOnReply(times = 1) {
      faults.cutsLeft = times
    },
    cutOnCall(name) {
      faults.cutOnCall = name
    },
    pointTo(next) {
      target = next
    },
    async refuse() {
      resetAll()
      await closed(server)
    },
    async heal({ reset = false } = {}) {
      Object.assign(faults, NONE, { latencyMs: { ...NONE.latencyMs } })
      open.forEach((connection) => connection.release(reset))
      if (!server.listening) await listen(server, port)
    },
    async close() {
      resetAll()
      await closed(server)
    },
  }
}

const NONE: Faults = {
  latencyMs: { 'to-server': 0, 'to-client': 0 },
  held: false,
  cutsLeft: 0,
  cutOnCall: undefined,
  isNextCut: true,
}

/** Makes a server listen on a free port, and returns the port. Tries again where another was faster to take it. */
async function listenSomewhere(server: Server): Promise<number> {
  for (let attempt = 0; ; attempt++) {
    const port = await freePort()
    try {
      await listen(server, port)
      return port
    } catch (error) {
      if (attempt === 5) throw error
    }
  }
}

/** Makes a server listen on a port, without keeping the process alive. Rejects if it cannot. */
function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, HOST, () => {
      server.off('error', reject)
      server.unref()
      resolve()
    })
  })
}

/** Resolves when a server has stopped listening and its connections have ended. */
function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()))
}

import { connect, type Socket } from 'node:net'
import { type Frame, FrameReader, FrameWriter } from './frames.js'
import { PROTOCOL, REPLY, REQUEST } from './protocol.js'

/** The outcome of an attempt to reach a server. */
export type Greeting =
  | { readonly socket: Socket; readonly epoch: number }
  /** No process listens: 'refused'. The server closed the connection again: 'closed'. */
  | 'refused'
  | 'closed'

/**
 * Connects to the server at `path`, sends the store's name and `formerEpoch`, and waits for the answer. An epoch is the random
 * number of one server. `formerEpoch` is that of the server which this process used before, 0 without one: it shows any other
 * server that the record of who holds which permit was lost with the former. Resolves with the connected socket and the server's
 * epoch, or with 'refused' if no process listens, or with 'closed' if the server ended at that moment. Rejects if no answer comes
 * within five ticks of 50 ms, as from a server that is stopped or busy, and when `signal` aborts.
 * @throws an error of the system, or of a server that is silent or speaks another protocol.
 */
export function greet(
  path: string,
  name: string,
  formerEpoch: number,
  signal?: AbortSignal,
): Promise<Greeting> {
  return new Promise((resolve, reject) => {
    const socket = connect(path)
    const reader = new FrameReader()
    /**
     * Ends the attempt: stops the timer, removes all listeners of this function, and calls `settle`, which settles the promise.
     * An error that the socket emits later is ignored here, as it would end the process if nothing listened.
     */
    const end = (settle: () => void): void => {
      clearInterval(timer)
      signal?.removeEventListener('abort', abort)
      for (const event of ['connect', 'data', 'error', 'close']) socket.removeAllListeners(event)
      socket.on('error', () => {}) // 'close' follows
      settle()
    }
    /** Ends the attempt without success: closes the connection, which is of no use, and rejects with `error`. */
    const fail = (error: unknown): void =>
      end(() => {
        socket.destroy()
        reject(error)
      })
    const abort = (): void => fail(new Error('the store was closed'))
    signal?.addEventListener('abort', abort)
    let silentTicks = 0 // see SILENT_TICKS for why the time itself does not decide
    const timer = setInterval(() => {
      if (++silentTicks === SILENT_TICKS) fail(new Error('the process that serves is silent'))
    }, TICK_MS)
    const sendHello = (): void => {
      const writer = new FrameWriter()
      writer.add(REQUEST.hello, 0, [PROTOCOL, formerEpoch], name)
      socket.write(writer.take())
    }
    const receiveHello = ({ kind, numbers: [protocol, epoch] }: Frame): void => {
      if (kind !== REPLY.hello || protocol !== PROTOCOL) throw new Error('it speaks another protocol')
      end(() => resolve({ socket, epoch: epoch! }))
    }
    socket.on('connect', sendHello)
    socket.on('data', (chunk) => {
      try {
        reader.push(chunk, receiveHello)
      } catch (error) {
        fail(error)
      }
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      const absence = ABSENCES[error.code!]
      if (absence) end(() => resolve(absence))
      else fail(error)
    })
    socket.on('close', () => end(() => resolve('closed')))
  })
}

/**
 * Whether a process listens to the socket at `path`: connects to it, sends nothing and hangs up. Any error but a refused
 * connection counts as yes, because it does not prove that the process has gone.
 */
export function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => socket.destroy())
    socket.on('error', ({ code }: NodeJS.ErrnoException) => resolve(ABSENCES[code!] !== 'refused'))
    socket.on('close', () => resolve(true))
  })
}

/** A plain file at the place of a socket is ENOTSOCK on macOS; a connection that was closed on arrival is a reset. */
const ABSENCES: Readonly<Record<string, 'refused' | 'closed'>> = {
  ECONNREFUSED: 'refused',
  ENOTSOCK: 'refused',
  ENOENT: 'refused',
  ECONNRESET: 'closed',
  EPIPE: 'closed',
}

/**
 * A server that answers nothing for five ticks of 50 ms is silent. Meanwhile calls wait, each until its deadline. However
 * long this process is busy, as it may be when it starts, that is one tick: it has not looked for the answer.
 */
const SILENT_TICKS = 5
const TICK_MS = 50

import { StoreError } from '@sluice/core'
import { storeClosed } from '@sluice/core/internal'
import type { Caller, MaybePromise } from '@sluice/core/store'
import { greet, type Greeting } from './greeting.js'
import { Host, type HostOptions, LocalServer } from './host.js'
import type { MachineServer, ServerListener } from './machine-server.js'
import type { MeetingPoint } from './meeting-point.js'
import { notSent, RemoteServer } from './remote-server.js'
import { Service } from './session.js'

export interface ServerAccessOptions {
  readonly meetingPoint: MeetingPoint
  readonly name: string
  readonly serve: 'auto' | boolean
  readonly host: HostOptions
}

/*
 * Who serves, and what a call does:
 *
 * 1. A store looks where the processes of its name meet: folders of sockets, or a named pipe (`MeetingPoint`).
 * 2. Where a server answers the greeting, in whichever folder, this process is its client (`RemoteServer`).
 * 3. Where none does, this process claims the place. One alone succeeds: it keeps the state (`Host`), listens for the others
 *    (`Service`), and calls itself without a socket (`LocalServer`). Those that were slower go back to 1.
 * 4. A call of a client is a frame. The server carries out the frames of each client in their order (`ClientSession`), on a
 *    memory store, and answers each with one frame. A call of the process that serves is answered at once.
 * 5. When the server ends, its connections do. Each client goes back to 1, so one of them takes over, with an empty state of
 *    another epoch: bookings and charges of the former one give nothing back, and permits are claimed again.
 * 6. Meanwhile calls wait, as far as their deadline lets them. Where no server is reached, they fail at once, are decided by
 *    `onStoreError`, and a server is looked for every 50 ms or so.
 * 7. A server looks every 5 s whether it is still the newest, as somebody may have deleted its socket. If not, it ends.
 */

/** This process's part in a store: it reaches the server, or becomes the server where there is none. */
export class ServerAccess {
  #server: MachineServer | undefined
  /** Calls that wait for the server; undefined while calls fail at once. */
  #waiting: (() => void)[] | undefined = []
  #failure: unknown
  #retry: ReturnType<typeof setTimeout> | undefined
  #formerEpoch = 0
  #isClosed = false
  readonly #closing = new AbortController()
  /** Settles with the outcome of the latest attempt to reach a server. */
  joined: Promise<void>

  /**
   * Begins at once to look for the process that serves this machine, or to become it; `joined` is the promise of that search. `options`
   * have the place where processes meet. `listener` gets what the server reports by itself, such as permits for waiting calls.
   */
  constructor(
    private readonly options: ServerAccessOptions,
    private readonly listener: Omit<ServerListener, 'ended'>,
  ) {
    this.joined = this.#join()
  }

  /** Whether a server is reached. */
  get isReached(): boolean {
    return this.#server !== undefined
  }

  /** The server, if this process is the server itself; otherwise undefined. */
  get local(): LocalServer | undefined {
    return this.#server instanceof LocalServer ? this.#server : undefined
  }

  /**
   * Returns what `act` returns for the server: at once if one is reached; during the search for one, a promise that goes on when
   * the search ends. After a search that failed the call fails at once (`#waiting` is undefined), until a server is found. A call
   * whose caller has given up meanwhile is never sent, which its error says.
   */
  ask<T>(act: (server: MachineServer) => MaybePromise<T>, caller?: Caller): MaybePromise<T> {
    if (this.#server) return act(this.#server)
    if (this.#isClosed) throw storeClosed()
    if (!this.#waiting) throw unavailable(this.#failure)
    caller?.queued?.(true)
    return new Promise((resolve, reject) => {
      this.#waiting!.push(() => {
        if (caller?.gone) return reject(notSent('the caller gave up before it was sent'))
        caller?.queued?.(false)
        try {
          resolve(this.ask(act, caller))
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  /**
   * Leaves the server for good, and ends it if it is this process. Calls that wait for a server are rejected (`#release`), and a search
   * that is under way, or due to be repeated, is given up.
   */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#retry)
    this.#closing.abort()
    const server = this.#server
    this.#server = undefined
    server?.close(storeClosed())
    this.#release()
  }

  /**
   * Begins a search for a server and returns its promise, which is also kept as `joined`. A rejection counts as handled: one that
   * no call waits for would end the process otherwise.
   */
  #join(): Promise<void> {
    this.joined = this.#attempt()
    this.joined.catch(() => {})
    return this.joined
  }

  /**
   * Reaches a server, or becomes it, and then lets the waiting calls go on. If that fails, these calls fail, the promise rejects,
   * and another attempt follows after about 50 ms. If the store was closed meanwhile, the new server is left again.
   */
  async #attempt(): Promise<void> {
    try {
      const server = await this.#reach()
      if (this.#isClosed) server.close(storeClosed())
      else this.#server = server
    } catch (error) {
      this.#failure = error
      if (!this.#isClosed) this.#retry = setTimeout(() => void this.#join().catch(() => {}), retryMs())
      this.#retry?.unref()
    }
    this.#release()
    if (this.#isClosed) throw storeClosed()
    if (!this.#server) throw unavailable(this.#failure)
  }

  /**
   * Ends the wait of the calls for the server: they are carried out, or fail if it was not reached. Without `#waiting`, later
   * calls do not wait.
   */
  #release(): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    for (const resume of waiting ?? []) resume()
  }

  /**
   * Returns a connection to the newest server, or makes this process the server if none listens and the option `serve` allows it.
   * With `serve: true` it is an error that another process serves, with `serve: false` that none does. It begins anew, up to 20
   * times, when a server came or went meanwhile: closed the connection, appeared among the newest, or claimed the place.
   * @throws {Error} why no server was reached.
   */
  async #reach(): Promise<MachineServer> {
    const { meetingPoint, serve } = this.options
    for (let attempts = 0; attempts < MOST_ATTEMPTS && !this.#isClosed; attempts++) {
      const newest = meetingPoint.newest()
      const found = await this.#greetAny(newest)
      if (typeof found === 'object') {
        if (serve !== true) return new RemoteServer(found.socket, found.epoch, this.#serverListener())
        found.socket.destroy()
        throw new Error('another process serves already')
      }
      const hasOneEnded = found === 'closed'
      if (hasOneEnded || String(meetingPoint.newest()) !== String(newest)) continue
      if (serve === false) throw new Error('no process serves')
      const own = await this.#serve(newest)
      if (own) return own
    }
    throw new Error('other processes begin and end to serve all the time')
  }

  /**
   * Connects to the servers at these addresses in turn, until one listens. Returns a socket to that server and its epoch, the
   * random number that names it; 'closed' if that server ended at that moment; 'refused' if none listens. The greeting tells the
   * epoch of the server that this process used before. If that was another server, the record of who holds which permit ended
   * with it, so for a while the server that is greeted grants permits only to processes that renew theirs.
   */
  async #greetAny(addresses: readonly string[]): Promise<Greeting> {
    const { name, serve } = this.options
    // With `serve: true` this process only looks whether another one serves. It renews no permits there, so it tells no epoch.
    const formerEpoch = serve === true ? 0 : this.#formerEpoch
    for (const address of addresses) {
      const found = await greet(address, name, formerEpoch, this.#closing.signal)
      if (found !== 'refused') return found
    }
    return 'refused'
  }

  /**
   * Makes this process the server, in the place after those at the addresses `former`, and returns it; undefined if another
   * process was faster. Where there was a server before, some may hold permits of it: for a while permits are granted only to
   * processes that renew theirs. Every 5 s it looks whether it is still the newest server, and ends if not.
   */
  async #serve(former: readonly string[]): Promise<MachineServer | undefined> {
    const { meetingPoint, name, host: options } = this.options
    const host = new Host(options)
    const service = new Service(host, name)
    const claim = await meetingPoint.claim(service.listener, former).catch((error: unknown) => {
      service.close()
      throw error
    })
    if (!claim) {
      service.close()
      return undefined
    }
    service.open()
    service.listener.unref()
    if (former.length > 0 || this.#formerEpoch !== 0) host.stateWasLost()
    const listener = this.#serverListener()
    const server: MachineServer = new LocalServer(host, listener, () => {
      clearInterval(watch)
      service.close()
    })
    const watch = setInterval(() => {
      if (claim.renew()) return
      listener.ended(server)
      server.close(storeClosed())
    }, WATCH_MS)
    watch.unref()
    return server
  }

  /**
   * What a server calls with its reports. When it ends, its epoch is kept, to be named to the next server. New calls then wait,
   * and the search for another server begins.
   */
  #serverListener(): ServerListener {
    return {
      ...this.listener,
      ended: (server) => {
        if (server !== this.#server) return
        this.#formerEpoch = server.epoch
        this.#server = undefined
        this.#waiting = []
        this.#join().catch(() => {})
      },
    }
  }
}

/**
 * The error of calls that were not sent because no server is reached. `cause` is the error that ended the last search for
 * one.
 */
function unavailable(cause: unknown): StoreError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new StoreError('STORE_UNAVAILABLE', `the process that serves is not reached: ${why}`, {
    cause,
    sent: false,
  })
}

/** Attempts of one round: in each of them a server came or went. */
const MOST_ATTEMPTS = 20

/** Milliseconds until a server is looked for again; random, so that processes spread. */
function retryMs(): number {
  return 50 * (0.5 + Math.random())
}

/** Milliseconds between two looks at whether this process still is the one that serves. */
const WATCH_MS = 5000

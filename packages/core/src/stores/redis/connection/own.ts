import { storeClosed } from '../../../values/closing.js'
import { StoreError } from '../../../values/errors.js'
import { warnProcessOnce } from '../../../values/process-warning.js'
import { addressOf, type RedisConnection, type RedisKey, type ScriptReply } from '../redis-connection.js'
import { type Endpoint, endpointOf } from './endpoint.js'
import { storeError } from '../clients/failure.js'
import { every, type Opened } from './opened.js'
import { openIoredis } from './own-ioredis.js'
import { openNodeRedis } from './own-node-redis.js'

/**
 * A connection that the store makes and that `close()` ends. No call is carried out twice. Up to 1,000 calls that are made while
 * it connects wait for it; the caller sets the deadline. It connects with the first call, or before. It keeps the process alive
 * only while a call waits, and until the first attempt to connect is over.
 * @throws {PolicyError} INVALID_OPTION, INVALID_DURATION. Where no client package is installed, calls reject with StoreError
 * CLIENT_MISSING.
 */
export class OwnConnection implements RedisConnection {
  readonly address: string
  readonly isCluster: boolean
  readonly replays = false
  /** What rejects each unanswered call, and the first attempt to connect, on `close`. */
  readonly #pending = new Set<(error: Error) => void>()
  readonly #options: Endpoint
  #opening: Promise<Opened> | undefined
  #first: Promise<void> | undefined
  #opened: Opened | undefined
  #closed = false
  /** The one handle that keeps the process alive (`ref`): those of clients do not. */
  readonly #alive = every(2 ** 30, () => this.#closed)

  /**
   * Reads where to connect to, a URL or options, for a connection that the store makes itself. Does not connect yet.
   * @throws {PolicyError} INVALID_OPTION, INVALID_DURATION.
   */
  constructor(given: unknown) {
    this.#options = endpointOf(given)
    this.address = addressOf(this.#options)
    this.isCluster = this.#options.cluster !== undefined
  }

  /**
   * Begins to connect, unless that has begun. Resolves once the client package is loaded and a client made, which may not be
   * connected yet; rejects if no package is installed. `#first` becomes the outcome of the first attempt to connect.
   */
  open(): Promise<Opened> {
    if (this.#opening) return this.#opening
    this.#opening = this.#load()
    const opening = this.#opening
    opening.catch(warnOfMissingPackage)
    this.#first = new Promise((resolve, reject) => {
      this.#addPending(reject)
      const over = (): void => this.#removePending(reject)
      opening
        .then(({ first }) => first)
        .then(() => resolve(), reject)
        .then(over, over)
    })
    this.#first.catch(() => {})
    return opening
  }

  /** Connects unless that has begun. Resolves once connected; rejects with the first failure, or when closed. */
  connect(): Promise<void> {
    this.open().catch(() => {})
    return this.#first!
  }

  evalsha(sha: string, keys: readonly RedisKey[], args: readonly Buffer[]): Promise<ScriptReply> {
    return this.#call((connection) => connection.evalsha(sha, keys, args))
  }

  eval(script: string, keys: readonly RedisKey[], args: readonly Buffer[]): Promise<ScriptReply> {
    return this.#call((connection) => connection.eval(script, keys, args))
  }

  trouble(): unknown {
    return this.#opened?.trouble()
  }

  isReady(): boolean {
    return this.#opened?.isReady() ?? false
  }

  /**
   * Runs `send`, and has the client write all calls that it makes to a node at once. Before there is a client, calls are queued
   * anyway.
   */
  inOneWrite(send: () => void): void {
    if (this.#opened) this.#opened.inOneWrite(send)
    else send()
  }

  /**
   * Calls `receive` with each message of a channel, as soon as there is a client. The returned function ends that; called before,
   * it prevents it. Without an installed client package nothing is received.
   */
  subscribe(channel: string, receive: (message: string) => void): () => void {
    let isEnded = false
    let unsubscribe: (() => void) | undefined
    this.open()
      .then((opened) => {
        if (!isEnded) unsubscribe = opened.subscribe?.(channel, receive)
      })
      .catch(() => {})
    return () => {
      isEnded = true
      unsubscribe?.()
      unsubscribe = undefined
    }
  }

  /**
   * Ends the connection. Calls that wait for a reply or for the connection are rejected, as a client that is ended during an
   * outage leaves them unsettled.
   */
  close(): void {
    this.#closed = true
    this.#opened?.close()
    this.#alive.close()
    const error = storeClosed()
    for (const reject of this.#pending) reject(error)
    this.#pending.clear()
  }

  /**
   * Makes a call by `send`, once there is a client, and settles with its outcome. If too many calls wait for a connection, it
   * rejects at once. A call that a master refused because it has become a replica was not carried out, and is sent once more, to
   * the new master. An error says that nothing was sent where the call never left the client's queue.
   */
  #call(send: (connection: RedisConnection) => Promise<ScriptReply>): Promise<ScriptReply> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(storeClosed())
      if (this.#pending.size > MOST_WAITING && !this.isReady()) {
        const what = `${MOST_WAITING} calls wait for a connection already`
        return reject(new StoreError('STORE_UNAVAILABLE', what, { sent: false }))
      }
      this.#addPending(reject)
      const isUnwritten = this.#watchIfQueued()
      const sent = this.#opened ? send(this.#opened) : this.open().then(send)
      const resolveCall = (reply: ScriptReply): void => {
        this.#removePending(reject)
        resolve(reply)
      }
      const rejectCall = (error: Error): void => {
        this.#removePending(reject)
        reject(isUnwritten() ? unwritten(error) : error)
      }
      sent.then(resolveCall, (error: Error) => {
        const opened = this.#opened
        const reconnected = opened?.afterStepDown?.(error)
        if (reconnected) reconnected.then(() => send(opened!)).then(resolveCall, rejectCall)
        else rejectCall(error)
      })
    })
  }

  /** Notes that a call, or the first attempt to connect, has begun; `reject` rejects it. The process stays alive for it. */
  #addPending(reject: (error: Error) => void): void {
    this.#pending.add(reject)
    this.#alive.ref()
  }

  /** Notes that the call, or the attempt, is over. The process may end if nothing else is under way. */
  #removePending(reject: (error: Error) => void): void {
    this.#pending.delete(reject)
    if (this.#pending.size === 0) this.#alive.unref()
  }

  /**
   * Returns a function that tells later, when a call made now has failed, whether the client has only queued the call: it was not
   * connected now and has not become so since. Such a call was surely not carried out. For a client that cannot say how often it
   * was ready (`timesReady`) the function returns false.
   */
  #watchIfQueued(): () => boolean {
    if (this.isReady()) return () => false
    const before = this.#opened?.timesReady?.() ?? 0
    return () => this.#opened?.timesReady?.() === before
  }

  /**
   * Loads the first client package that is installed, and makes a client with it, which begins to connect.
   * @throws {StoreError} CLIENT_MISSING, CLOSED.
   */
  async #load(): Promise<Opened> {
    const open = await loadOpener()
    if (this.#closed) throw storeClosed()
    return (this.#opened = open(this.#options))
  }
}

/** Warns once per process: if no caller awaits the first calls, nothing else shows the failure. */
function warnOfMissingPackage({ code, message }: StoreError): void {
  if (code === 'CLIENT_MISSING') warnProcessOnce(code, message)
}

/**
 * Returns the failure of a call that was never written to Redis, as an error that says so (`sent: false`). A refusal by the
 * server is left as it is.
 */
function unwritten(error: Error): Error {
  const failure = storeError(error)
  if (!(failure instanceof StoreError) || failure.failure !== 'unavailable') return error
  return new StoreError('STORE_UNAVAILABLE', failure.message, { cause: error, sent: false })
}

const MOST_WAITING = 1000

/*
 * The client packages are optional peers: they are loaded when a connection is made, not when this file is imported.
 * The specifiers are literals, so that bundlers include the packages that are installed; each import is in a `try`, so that
 * bundlers treat the others as optional. webpack would warn of packages that are not installed: the build adds a comment to each
 * import by which webpack leaves it to the runtime.
 */
/**
 * Returns what opens connections with the first client package that is installed: ioredis, iovalkey or redis (node-redis).
 * @throws {StoreError} CLIENT_MISSING if none is.
 */
async function loadOpener(): Promise<(options: Endpoint) => Opened> {
  const ioredis = (await load('ioredis')) ?? (await load('iovalkey'))
  if (ioredis) return (options) => openIoredis(exportsOf(ioredis, 'Cluster'), options)
  const nodeRedis = await load('redis')
  if (nodeRedis) return (options) => openNodeRedis(exportsOf(nodeRedis, 'createCluster'), options)
  const what = `a connection of its own needs a client package: npm install ioredis (or iovalkey, or redis)`
  throw new StoreError('CLIENT_MISSING', `${what}, or hand in a client`)
}

/**
 * Loads a client package and returns its exports. Undefined if it is not installed; where it is installed and fails to load, for
 * example for want of another package, that is an error.
 */
async function load(name: 'ioredis' | 'iovalkey' | 'redis'): Promise<unknown> {
  try {
    if (name === 'ioredis') return await import('ioredis')
    if (name === 'iovalkey') return await import('iovalkey')
    return await import('redis')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const isMissing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
    if (isMissing && message.includes(`'${name}'`)) return undefined
    throw error
  }
}

/**
 * Returns the exports of a CommonJS module that was imported. They lie in `default` or not, depending on the loader: `name` is
 * one of them, by which that is found out.
 */
function exportsOf<T>(module: unknown, name: keyof T): T {
  const { default: whole } = module as { default?: T }
  return whole?.[name] === undefined ? (module as T) : whole
}

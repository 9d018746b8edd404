import { Buffer } from 'node:buffer' // the global is a getter
import type { Writable } from 'node:stream'
import { addressOf } from '../redis-connection.js'
import type { Location, RedisConnection, RedisKey, ScriptReply, Subscribe } from '../redis-connection.js'
import { type Emitter, hearLaterErrors, listenForErrors } from './error-listener.js'
import { isRefusedBy } from './failure.js'
import { untilDone } from './until-done.js'

/** The members of a Redis or Cluster of ioredis or iovalkey that are used. */
export interface IoredisClient extends Emitter, IoredisScripts {
  readonly isCluster?: boolean
  readonly status: string
  readonly options: IoredisOptions
  ping(): Promise<unknown>
  sendCommand(command: unknown): unknown
  connect(): Promise<unknown>
  disconnect(): void
  subscribe(channel: string): Promise<unknown>
  /** Makes another client with the same options, overridden by these; of a Cluster, behind a list of nodes. */
  duplicate(...options: object[]): IoredisClient
  /** Of a Cluster, as `nodes`. */
  readonly startupNodes?: readonly unknown[]
  nodes?(role: 'master'): readonly { readonly stream?: Partial<Pick<Writable, 'cork' | 'uncork'>> }[]
}

interface IoredisScripts {
  evalshaBuffer(sha: string, keys: number, ...args: (readonly RedisKey[])[]): Promise<unknown>
  evalBuffer(script: string, keys: number, ...args: (readonly RedisKey[])[]): Promise<unknown>
}

/**
 * Returns a connection over a client of ioredis or iovalkey that was handed in, and stays open. The client itself follows MOVED
 * and ASK, by which nodes of a Cluster send it to another. A client with a password says that it is ready before the server has
 * accepted it, so it is asked by a PING too.
 */
export function ioredisConnection(client: IoredisClient): RedisConnection {
  const run = scriptRunnerOf(client)
  const isReady = (): boolean => client.status === 'ready'
  const errors = listenForErrors(client, isReady, client.options.password ? () => client.ping() : undefined)
  return {
    address: addressOf(client.startupNodes ? { cluster: client.startupNodes } : client.options),
    ...errors,
    /**
     * Resolves once the client is connected, rejects with what it reports before. A lazy client (its status is 'wait'), which would
     * connect only with its first command, is told to connect now.
     */
    connect() {
      const connected = errors.connect()
      if (connected && client.status === 'wait') client.connect().catch(() => {})
      return connected
    },
    evalsha: (sha, keys, args) => run('evalshaBuffer', sha, keys, args),
    eval: (script, keys, args) => run('evalBuffer', script, keys, args),
    isReady,
    inOneWrite: (send) => inOneWrite(client.nodes?.('master') ?? [], send),
    isCluster: client.isCluster === true,
    subscribe: subscriberOver(client),
    replays: replays(client.options, client.isCluster === true),
  }
}

/**
 * Makes the function that subscribes to a channel and returns a function that ends the subscription. A subscribed connection takes
 * no other commands, so each subscription has a duplicate of the client that was handed in. It is subscribed anew here whenever it
 * is ready and after each failure, and must not do so by itself (`autoResubscribe`): nobody gets that promise, and a rejection would
 * end the process.
 * Messages that are published while it is not connected are lost, so semaphores also poll.
 */
function subscriberOver(client: IoredisClient): Subscribe {
  return (channel, receive) => {
    // No reply is due on it, so silence is no failure; and it must connect even if its parent is lazy or queues nothing.
    const needed = { lazyConnect: false, enableOfflineQueue: true, socketTimeout: undefined }
    const options = { ...needed, autoResubscribe: false }
    const subscriber = client.duplicate(...(client.isCluster ? [[], options] : [options]))
    const attempts = untilDone(() => subscriber.subscribe(channel))
    subscriber.on('error', () => hearLaterErrors(subscriber as object))
    subscriber.on('message', (_: string, message: string) => receive(message))
    subscriber.on('ready', attempts.start)
    return () => {
      attempts.end()
      subscriber.disconnect()
    }
  }
}

/**
 * Runs `send`, and has all commands that it sends to a node written at once. The sockets of `nodes` are corked, which means that
 * they collect what is written until they are uncorked. A client writes each command by itself otherwise, and every write is a
 * system call here and wakes the server.
 */
function inOneWrite(nodes: ReturnType<NonNullable<IoredisClient['nodes']>>, send: () => void): void {
  const streams = nodes.map(({ stream }) => stream)
  for (const stream of streams) stream?.cork?.()
  try {
    send()
  } finally {
    for (const stream of streams) stream?.uncork?.()
  }
}

type RunScript = (
  method: keyof IoredisScripts,
  ...call: Parameters<RedisConnection['eval']>
) => Promise<ScriptReply>

/**
 * Returns a function that runs scripts by a method of the client, called on a stand-in that has what the method uses: `options` and
 * `sendCommand`. So a command gets its keys and arguments after the client has made it, and is written in one Buffer (`inOneBuffer`):
 * the client would look at each three times. And there is no autopipelining, which chooses the node of a Cluster by the script in
 * place of the key (redis/ioredis#2109, iovalkey 0.4), and keeps one pipeline in flight. Methods that a subclass or wrapper has
 * replaced may need their client: they are left alone, unless it uses autopipelining.
 */
function scriptRunnerOf(client: IoredisClient): RunScript {
  const { enableAutoPipelining } = client.options
  if (!enableAutoPipelining && isReplaced(client))
    return (method, script, keys, args) =>
      client[method](script, keys.length, keys, args) as Promise<ScriptReply>
  const options = Object.create(client.options, { enableAutoPipelining: { value: false } }) as object
  return (method, script, keys, args) => {
    const lists = [keys, args]
    // A client with a prefix puts it before keys only when it makes a command, so these must be there then.
    const [withCommand, addedToCommand] = client.options.keyPrefix ? [lists, []] : [[], lists]
    const sendCommand = (command: Command) => sendOnce(client, command, addedToCommand)
    const standIn = { options, sendCommand }
    return client[method].apply(standIn, [script, keys.length, ...withCommand]) as Promise<ScriptReply>
  }
}

/**
 * Adds keys and arguments to a command, and has the client send it. As a Cluster client sends a command, it puts a handler of its own
 * in place of the command's `reject`. If keys are being moved to another node (TRYAGAIN), that handler would send the command to
 * nodes at random up to sixteen times, once in 100 ms; so the command is rejected at once then.
 */
function sendOnce(client: IoredisClient, command: Command, lists: readonly (readonly RedisKey[])[]): unknown {
  const { reject } = command
  const sent = client.sendCommand(inOneBuffer(command, lists))
  const handle = command.reject
  if (handle !== reject)
    Object.assign(command, {
      reject: (error: Error) => (isRefusedBy('TRYAGAIN', error) ? reject : handle).call(command, error),
    })
  return sent
}

/**
 * Whether a subclass or a wrapper has replaced the methods that run scripts. All clients inherit these methods from one class, so
 * they were replaced if not exactly one object in the chain of prototypes has them.
 */
function isReplaced(client: object): boolean {
  let owners = 0
  for (let owner: object | null = client; owner; owner = Object.getPrototypeOf(owner) as object | null) {
    if (Object.hasOwn(owner, 'evalBuffer') || Object.hasOwn(owner, 'evalshaBuffer')) owners++
  }
  return owners !== 1
}

/** A command of ioredis or iovalkey, as far as it is used: its name, and the strings and Buffers behind it. */
interface Command {
  readonly name: string
  readonly args: (string | Buffer)[]
  /** Rejects the call; a Cluster client puts a function of its own in its place. */
  readonly reject: (error: Error) => void
}

/**
 * Appends keys and arguments to a command that the client has made, gives it a faster writer (`toWritable`), and returns it. If
 * the client got them when it makes the command, it would look at each argument three times, and write each string as a piece of
 * its own: with many keys that took most of the client's time.
 */
export function inOneBuffer(command: object, lists: readonly (readonly RedisKey[])[] = []): object {
  for (const list of lists) for (const item of list) (command as Command).args.push(item)
  return 'toWritable' in command ? Object.assign(command, WRITER) : command
}

/**
 * Returns the command as bytes in Redis's protocol, which gives each text behind its length in bytes. Nearly all texts are ASCII,
 * so characters are first counted for bytes, which is faster. Where that was wrong, each text is measured.
 */
function toWritable(this: Command): Buffer {
  return encoded(this, true) ?? encoded(this, false)!
}

const WRITER = { toWritable }

/**
 * Returns a command as the bytes that Redis reads, in which the length of each argument in bytes stands before it. With
 * `isAscii` texts are measured in characters, which is faster. If some text then has more bytes than characters, the lengths are
 * wrong, and the result is undefined. Texts in a row are joined and become bytes together.
 */
function encoded({ name, args }: Command, isAscii: boolean): Buffer | undefined {
  const pieces: Buffer[] = []
  let characters = 0
  let bytes = 0
  /**
   * Adds a text as bytes, and counts its characters and its bytes. More bytes than characters in the end mean that some text was
   * not ASCII.
   */
  const add = (text: string): void => {
    const piece = Buffer.from(text)
    characters += text.length
    bytes += piece.length
    pieces.push(piece)
  }
  let text = `*${args.length + 1}${headerOf(name.length)}${name}`
  for (const arg of args) {
    if (typeof arg === 'string') text += headerOf(isAscii ? arg.length : Buffer.byteLength(arg)) + arg
    else {
      add(text + headerOf(arg.length))
      pieces.push(arg)
      text = ''
    }
  }
  add(`${text}\r\n`)
  return isAscii && bytes > characters ? undefined : Buffer.concat(pieces)
}

/** RESP header of the next argument of this length, with the CRLF that ends the one before. */
function headerOf(length: number): string {
  return HEADERS[length] ?? `\r\n$${length}\r\n`
}

const HEADERS: readonly string[] = Array.from({ length: 256 }, (_, length) => `\r\n$${length}\r\n`)

/*
 * When ioredis (6) and iovalkey (0.4) repeat a command whose connection broke before the reply, found by counting
 * executions behind a proxy that drops the reply:
 *
 * - A standalone client, also through Sentinel, repeats unanswered commands after it has reconnected. It does not with
 *   `maxRetriesPerRequest: 0`, which rejects immediately, with `autoResendUnfulfilledCommands: false`, which leaves the
 *   call unsettled, or without a `retryStrategy`. Any other number, null, `enableOfflineQueue: false` and
 *   `commandTimeout` (which rejects and still repeats) do not prevent it.
 * - A Cluster client repeats after `retryDelayOnFailover` (100 ms), whatever `redisOptions` say; 0 prevents it. Nodes that
 *   reconnect by a `clusterNodeRetryStrategy` also repeat like standalone clients.
 *
 * node-redis (6) never repeats, except in its sentinel (node-redis.ts).
 */

interface IoredisOptions extends Location {
  readonly enableAutoPipelining?: boolean
  readonly keyPrefix?: unknown
  readonly password?: unknown
  readonly maxRetriesPerRequest?: unknown
  readonly autoResendUnfulfilledCommands?: unknown
  readonly retryStrategy?: unknown
  readonly retryDelayOnFailover?: unknown
  readonly clusterNodeRetryStrategy?: unknown
  readonly redisOptions?: IoredisOptions | null
}

/**
 * Whether a client with these options may send a command again whose reply was lost, so that a script is run twice for one call.
 * A client of one server does so after it has reconnected (`retryStrategy`). A Cluster client does so after `retryDelayOnFailover`,
 * and its client of a node after that has reconnected.
 */
function replays(options: IoredisOptions, isCluster: boolean): boolean {
  if (!isCluster) return typeof options.retryStrategy === 'function' && resends(options)
  // A node that gives up reconnecting leaves its calls to `retryDelayOnFailover`, whatever its own settings.
  if (Number(options.retryDelayOnFailover) > 0) return true
  return typeof options.clusterNodeRetryStrategy === 'function' && resends(options.redisOptions ?? {})
}

function resends({ maxRetriesPerRequest, autoResendUnfulfilledCommands = true }: IoredisOptions): boolean {
  return maxRetriesPerRequest !== 0 && Boolean(autoResendUnfulfilledCommands)
}

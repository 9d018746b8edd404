import type { RedisConnection, ScriptReply } from '@sluice/core/internal'
import type { Process } from './process.js'
import type { Execution, Node, ScriptCall, Server } from './server.js'

/** A call without an outcome. */
interface Pending extends ScriptCall {
  readonly resolve: (reply: ScriptReply) => void
  readonly reject: (error: Error) => void
  /** When the store made it; it may have waited for the connection since. */
  readonly sentAt: number
  /** The node that it was sent to. */
  node: Node | undefined
}

export interface LinkOptions {
  /** Whether it closes itself after a second without a reply, as connections of the store's own do. */
  readonly isWatched: boolean
  /** Microseconds until the first connection is ready. */
  readonly connects: number
  /** Microseconds of one way, drawn anew for each message. */
  readonly delay: () => number
}

const SILENCE_US = 1_000_000
const CONNECT_US = 500
/** What a call takes longer that is sent on to another node. */
const REDIRECTED_US = 30_000
/** What becomes of calls whose slot moves, one after the other; a client reports in the end that it was sent on too often. */
const FATES = ['late', 'lost', 'failed'] as const
const REDIRECTED = 'Too many Cluster redirections. Last error: MOVED'
const NODE_DOWN = 'CLUSTERDOWN The cluster is down'

/**
 * The connection of one process to the server: what a client of Redis is to the store. Messages of one way keep their order. When it
 * breaks, each call without a reply fails, whether or not the server has carried it out; nothing is sent twice.
 */
export class Link implements RedisConnection {
  readonly isCluster: boolean
  readonly replays = false
  readonly address = 'simulated:6379'
  /** Calls that the server has answered with a script's reply: read by the simulation, in the step of their delivery. */
  delivered: Execution | undefined
  /** The instants until which messages to the server, and from it, vanish. */
  readonly lost = { to: 0, from: 0 }
  /** When the connection broke, and when replies came. */
  readonly breaks: number[] = []
  readonly heard: number[] = []
  /** Channels that are listened to. */
  subscriptions = 0
  /** The instant until which no connection comes about. */
  unreachableUntil = 0
  #isUp = false
  #trouble: unknown
  /** Counts connections, and those of them of which what was on its way arrives though they broke. */
  #epoch = 0
  readonly #arriving = new Set<number>()
  #attempts = 0
  #lastTo = 0
  #lastFrom = 0
  readonly #waiting: Pending[] = []
  readonly #pending = new Set<Pending>()
  readonly #connected: ((error: unknown) => void)[] = []
  /** When calls were made of which the server did not know the script, by their arguments, with which they are sent again. */
  readonly #unknown = new Map<readonly Buffer[], number>()
  #heardAt = 0
  /** Counts calls whose slot was moving. */
  #moved = 0
  isClosed = false

  constructor(
    readonly process: Process,
    readonly server: Server,
    readonly options: LinkOptions,
  ) {
    this.isCluster = server.nodes.length > 1
    server.broken.push((node) => {
      if (node) this.#lose(node)
      else this.break('the server closed the connection')
    })
    this.#connect()
  }

  evalsha: RedisConnection['evalsha'] = (sha, keys, args) =>
    this.#call({ sha, script: undefined, keys, args })
  eval: RedisConnection['eval'] = (script, keys, args) => this.#call({ sha: undefined, script, keys, args })
  /** Messages are lost while the connection is broken, or those from the server vanish. */
  subscribe: RedisConnection['subscribe'] = (channel, receive) => {
    this.subscriptions++
    const end = this.server.subscribe(channel, (message) => {
      const { world } = this.process
      const epoch = this.#epoch
      if (!this.#isUp || world.now < this.lost.from) return
      this.#lastFrom = Math.max(this.#lastFrom, world.now + this.options.delay())
      world.after(this.#lastFrom - world.now, this.process, () => {
        if (epoch === this.#epoch) receive(message)
      })
    })
    return () => {
      this.subscriptions--
      return end()
    }
  }
  inOneWrite(send: () => void): void {
    send()
  }
  isReady(): boolean {
    return this.#isUp
  }
  trouble(): unknown {
    return this.#isUp ? undefined : this.#trouble
  }
  connect(): Promise<unknown> | undefined {
    if (this.#isUp || this.#trouble !== undefined) return undefined
    return new Promise<void>((resolve, reject) =>
      this.#connected.push((error) => (error === undefined ? resolve() : reject(error))),
    )
  }
  /** The client was handed in, and stays open. */
  close(): void {}

  /** Calls without an outcome. */
  get unanswered(): number {
    return this.#pending.size + this.#waiting.length
  }

  /** Breaks the connection, as the process hears by its next event. Calls on their way are carried out where they still `arrive`. */
  break(why: string, arrive = false): void {
    if (!this.#isUp) return
    this.#isUp = false
    this.breaks.push(this.process.world.now)
    if (arrive) this.#arriving.add(this.#epoch)
    this.#epoch++
    const error = new Error(`Connection is closed: ${why}`)
    this.#trouble = error
    const pending = [...this.#pending]
    this.#pending.clear()
    this.process.world.after(0, this.process, () => {
      for (const call of pending) call.reject(error)
    })
    this.#connectLater()
  }

  /** Fails what was sent to a node that has hung up: the connections to others stay. */
  #lose(node: Node): void {
    const { world, isDead } = this.process
    if (!this.#isUp || isDead) return
    this.breaks.push(world.now)
    for (const call of this.#pending) {
      if (call.node !== node) continue
      this.#pending.delete(call)
      world.after(0, this.process, () => call.reject(new Error('Connection is closed: by a node')))
    }
  }

  #connectLater(): void {
    if (this.isClosed) return
    const pause = Math.min(10 * 2 ** this.#attempts++, 200) * 1000
    this.process.world.after(pause, this.process, () => this.#connect())
  }

  #connect(): void {
    const { process, server } = this
    const takes = this.#attempts === 0 && this.#epoch === 0 ? this.options.connects : CONNECT_US
    process.world.after(takes, process, () => {
      if (this.isClosed) return
      const isRefused = server.isDead || process.world.now < this.unreachableUntil
      // A server that stands still accepts no connection that is ready, as it answers nothing on it.
      const isSilent = server.nodes.every(({ stillUntil }) => stillUntil > process.world.now + SILENCE_US)
      if (isRefused || isSilent) {
        this.#trouble = new Error(isRefused ? 'connect ECONNREFUSED' : 'connect ETIMEDOUT')
        for (const each of this.#connected.splice(0)) each(this.#trouble)
        return this.#connectLater()
      }
      this.#isUp = true
      this.#attempts = 0
      this.#trouble = undefined
      this.#heardAt = process.world.now
      for (const each of this.#connected.splice(0)) each(undefined)
      for (const call of this.#waiting.splice(0)) this.#send(call)
    })
  }

  #call(call: ScriptCall): Promise<ScriptReply> {
    return new Promise((resolve, reject) => {
      // A script that the server did not know is sent again with its text: it is the call that was made before.
      const sentAt = this.#unknown.get(call.args) ?? this.process.world.now
      this.#unknown.delete(call.args)
      const pending = { ...call, resolve, reject, sentAt, node: undefined }
      if (this.#isUp) this.#send(pending)
      else this.#waiting.push(pending)
    })
  }

  #send(call: Pending): void {
    const { process, server, options, lost } = this
    const { world } = process
    const [epoch, { starts }] = [this.#epoch, server]
    const { node, isMoving } = server.ownerOf(call)
    const fate = isMoving ? FATES[this.#moved++ % FATES.length] : undefined
    call.node = node
    if (this.#pending.size === 0) this.#heardAt = world.now
    this.#pending.add(call)
    if (options.isWatched) this.#watch()
    if (world.now < lost.to || fate === 'lost') return
    this.#lastTo = Math.max(this.#lastTo, world.now + options.delay())
    const arrivesAt = this.#lastTo + (fate === 'late' ? REDIRECTED_US : 0)
    const refusal = node.isDead ? NODE_DOWN : fate === 'failed' ? REDIRECTED : undefined
    world.after(arrivesAt - world.now, refusal === undefined ? node : undefined, () => {
      // What was written is carried out though its process has died.
      const isCut = epoch !== this.#epoch && !process.isDead && !this.#arriving.has(epoch)
      if (isCut || server.isDead || starts !== server.starts) return
      let outcome: { readonly reply: ScriptReply; readonly execution: Execution } | Error
      try {
        if (refusal !== undefined) throw new Error(refusal)
        outcome = server.run(node, call, process.name, call.sentAt)
      } catch (error) {
        outcome = error as Error
      }
      const what =
        outcome instanceof Error
          ? outcome.message.slice(0, 30)
          : `run ${outcome.execution.number} ${keysOf(call)}`
      world.trace(`server ${process.name} ${what}`)
      if (world.now < lost.from) return
      this.#lastFrom = Math.max(this.#lastFrom, world.now + options.delay())
      world.after(this.#lastFrom - world.now, process, () => this.#receive(call, outcome, epoch))
    })
  }

  #receive(
    call: Pending,
    outcome: { readonly reply: ScriptReply; readonly execution: Execution } | Error,
    epoch: number,
  ): void {
    if (epoch !== this.#epoch || !this.#pending.delete(call)) return
    this.#heardAt = this.process.world.now
    this.heard.push(this.#heardAt)
    if (outcome instanceof Error) {
      if (outcome.message.startsWith('NOSCRIPT ')) this.#unknown.set(call.args, call.sentAt)
      return call.reject(outcome)
    }
    this.delivered = outcome.execution
    outcome.execution.deliveredAt = this.#heardAt
    call.resolve(outcome.reply)
  }

  /** Breaks the connection once calls have had no reply for a second. */
  #watch(): void {
    const epoch = this.#epoch
    this.process.world.after(SILENCE_US, this.process, () => {
      if (epoch !== this.#epoch || this.#pending.size === 0) return
      if (this.process.world.now - this.#heardAt >= SILENCE_US) this.break('no reply for a second')
    })
  }
}

function keysOf({ keys }: ScriptCall): string {
  return keys.map((key) => String(key).slice(String(key).lastIndexOf(':') + 1)).join()
}

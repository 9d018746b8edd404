import { createHash } from 'node:crypto'
import { partsOf, type RedisKey, type RedisKeyParts, type ScriptReply } from '@sluice/core/internal'
import { type LuaRedis, startLuaRedis } from '../../core/test/lua/lua-redis.js'
import { EPOCH_MS } from './process.js'
import type { Owner, World } from './world.js'

/** One call of a script, as a connection sends it: by its SHA-1, or with its text. */
export interface ScriptCall {
  readonly sha: string | undefined
  readonly script: string | undefined
  readonly keys: readonly RedisKey[]
  readonly args: readonly Buffer[]
}

/** A script, and whether it decides calls on several keys. */
export interface Script {
  readonly text: string
  readonly decidesWholes: boolean
}

/** A script that was run. */
export interface Execution {
  readonly number: number
  /** Counts losses of state: two executions of one life have seen the same state. */
  readonly life: number
  /** The server's clock, in microseconds. */
  readonly clock: number
  /** When it was run, in the world's time. */
  readonly at: number
  readonly keys: readonly string[]
  readonly script: Script
  readonly args: readonly Buffer[]
  readonly reply: ScriptReply
  /** When and by which process the call was sent. */
  readonly sentAt: number
  readonly process: string
  /** When its reply was read, in the world's time. */
  deliveredAt: number | undefined
  /** Whether the server was out of memory. */
  readonly isFull: boolean
}

/** Commands that need memory, and those that write. */
const GROWING = ['SET', 'SETRANGE', 'HSET', 'ZADD']
const WRITING = [...GROWING, 'DEL', 'PEXPIRE', 'HDEL', 'ZREM', 'ZREMRANGEBYSCORE']

/** What the server answers while it refuses. */
export const REFUSALS = {
  oom: { words: "OOM command not allowed when used memory > 'maxmemory'.", commands: GROWING },
  readonly: { words: "READONLY You can't write against a read only replica.", commands: WRITING },
  busy: { words: 'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.' },
  loading: { words: 'LOADING Redis is loading the dataset in memory' },
} as const satisfies Record<string, { readonly words: string; readonly commands?: readonly string[] }>

export type Refusal = keyof typeof REFUSALS

/** What another program does to a key: it writes a text, bytes of the same length, or in its place a value of another type. */
const FOREIGN = [
  "redis.call('SET', KEYS[1], ARGV[1]) return ''",
  "redis.call('SETRANGE', KEYS[1], 0, string.rep('\\255', redis.call('STRLEN', KEYS[1]))) return ''",
  "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'field', ARGV[1]) return ''",
]

/** Which of many slots a key lies in. */
function slotOf(key: string): number {
  let slot = 0
  for (let i = 0; i < key.length; i++) slot = (slot * 31 + key.charCodeAt(i)) % 16_384
  return slot
}

/** The microseconds that a script takes. */
const SCRIPT_US = 20

let lua: LuaRedis | undefined
/** Scripts that any world has run, by SHA-1. */
const scripts = new Map<string, Script>()
/** Keys that any world has had, read. */
const named = new Map<string, Partial<RedisKeyParts>>()

/** Reads a key; what is no key of ours has no parts. */
export function partsOfKey(key: string): Partial<RedisKeyParts> {
  let parts = named.get(key)
  if (!parts) named.set(key, (parts = partsOf('sluice', key) ?? {}))
  return parts
}

/** One that owns a part of the keys: of a Cluster there are two. */
export class Node implements Owner {
  stillUntil = 0
  isDead = false
  /** Until when half of its slots are on their way to the other node. */
  movesUntil = 0
  /** Scripts that it knows, by SHA-1. */
  readonly known = new Set<string>()
}

/**
 * One Redis, or a Cluster of two nodes that lose nothing by themselves: the real scripts on Lua 5.1, with time and expiry by the world's
 * clock. One at a time.
 */
export class Server {
  readonly nodes: readonly Node[]
  isDead = false
  /** Microseconds by which its clock was moved. */
  skew = 0
  life = 0
  /** For each life, the one whose state it began with; undefined if it began with none. */
  readonly #origins: (number | undefined)[] = []
  #savedLife: number | undefined
  starts = 0
  readonly executions: Execution[] = []
  /** For each start, the number of the first execution after it, and of those before it whose effects are kept. */
  readonly losses: { readonly before: number; readonly kept: readonly number[] }[] = []
  /** The number of the first execution after it has refused commands of scripts for a time. */
  refusedFrom = Infinity
  /** Executions whose effects are in the state, and in what was saved. */
  #applied: number[] = []
  #saved: readonly number[] = []
  /** Who hears the messages of a channel. */
  readonly #listeners = new Map<string, Set<(message: string) => void>>()
  /** Called when it dies, or one of its nodes: connections break. */
  readonly broken: ((node?: Node) => void)[] = []
  readonly #lua = (lua ??= startLuaRedis('packages/core/test/lua/redis.lua'))
  readonly #refusals = new Set<Refusal>()

  constructor(
    readonly world: World,
    nodes = 1,
  ) {
    this.nodes = Array.from({ length: nodes }, () => new Node())
    this.#lua.restore()
    this.#lua.messages() // those of the last world
    this.#refuse()
  }

  get clock(): number {
    return EPOCH_MS * 1000 + this.world.now + this.skew
  }

  /** The owner of a call's keys, which are of one slot where there is more than one, and whether these are on their way to another. */
  ownerOf({ keys }: ScriptCall): { readonly node: Node; readonly isMoving: boolean } {
    const { nodes } = this
    const [slot = 0, ...others] = nodes.length > 1 ? keys.map((key) => slotOf(String(key))) : []
    if (others.some((other) => other !== slot))
      throw new Error("CROSSSLOT Keys in request don't hash to the same slot")
    const node = nodes[slot % nodes.length]!
    return { node, isMoving: node.movesUntil > this.world.now && slot % 4 < 2 }
  }

  /** Runs a script on a node, or throws what that answers in its place. */
  run(
    node: Node,
    call: ScriptCall,
    process: string,
    sentAt: number,
  ): { readonly reply: ScriptReply; readonly execution: Execution } {
    for (const refusal of ['loading', 'busy'] as const) {
      if (this.#refusals.has(refusal)) throw new Error(REFUSALS[refusal].words)
    }
    const sha = call.sha ?? createHash('sha1').update(call.script!).digest('hex')
    if (call.script !== undefined) {
      const text = call.script
      if (!scripts.has(sha)) scripts.set(sha, { text, decidesWholes: text.includes('next_key') })
      node.known.add(sha)
    }
    if (!node.known.has(sha)) throw new Error('NOSCRIPT No matching script. Please use EVAL.')
    const keys = call.keys.map(String)
    const clock = this.clock
    node.stillUntil = Math.max(node.stillUntil, this.world.now + SCRIPT_US)
    const calls = call.keys.map((key, i) => [Buffer.from(key), call.args[i] ?? call.args.at(-1)] as const)
    const script = scripts.get(sha)!
    const reply = this.#lua.runAll(script.text, clock, calls as never)
    this.#publish()
    const number = this.executions.length
    const isFull = this.#refusals.has('oom')
    const rest = { script, args: call.args, reply, sentAt, process, deliveredAt: undefined, isFull }
    const execution = { number, life: this.life, clock, at: this.world.now, keys, ...rest }
    this.executions.push(execution)
    this.#applied.push(number)
    return { reply, execution }
  }

  /** Runs all scripts that were run once more, one after the other and nothing else, and returns the milliseconds that it took. */
  runBare(): number {
    this.#lua.restore()
    const began = performance.now()
    for (const { script, clock, keys, args } of this.executions)
      this.#lua.runAll(
        script.text,
        clock,
        keys.map((key, i) => [Buffer.from(key), args[i] ?? args.at(-1)]) as never,
      )
    return performance.now() - began
  }

  /** Has `receive` called with each message of a channel, until the returned function is called. */
  subscribe(channel: string, receive: (message: string) => void): () => void {
    const all = this.#listeners.get(channel) ?? new Set()
    this.#listeners.set(channel, all.add(receive))
    return () => all.delete(receive)
  }

  #publish(): void {
    for (const [channel, text] of this.#lua.messages()) {
      for (const receive of this.#listeners.get(channel) ?? []) receive(text)
    }
  }

  refuse(refusal: Refusal, isOn: boolean): void {
    if (isOn && 'commands' in REFUSALS[refusal])
      this.refusedFrom = Math.min(this.refusedFrom, this.executions.length)
    if (isOn) this.#refusals.add(refusal)
    else this.#refusals.delete(refusal)
    this.#refuse()
  }

  flushScripts(): void {
    for (const { known } of this.nodes) known.clear()
  }

  /** Has another program write to all keys of limiters and semaphores: what was there is lost. */
  breakState(): void {
    if (this.isDead || this.#refusals.size > 0) return
    const keys = new Set(this.#applied.flatMap((number) => this.executions[number]!.keys))
    for (const key of keys) {
      if (partsOfKey(key).limiter)
        this.#lua.runAll(FOREIGN[key.includes('semaphore') ? 0 : key.length % 3]!, this.clock, [
          [Buffer.from(key), Buffer.from('x')],
        ])
    }
    this.#begin(undefined)
    this.#lose([])
  }

  /** Whether all that was there in the life `earlier` was lost by the life `later`, which it was not if what was saved then came back. */
  hasLost(earlier: number, later: number): boolean {
    let life: number | undefined = later
    while (life !== undefined && life > earlier) life = this.#origins[life]
    return life === undefined
  }

  #begin(origin: number | undefined): void {
    this.life++
    this.#origins[this.life] = origin
  }

  #lose(kept: readonly number[]): void {
    this.#applied = [...kept]
    this.losses.push({ before: this.executions.length, kept })
  }

  /** Keeps the state as it is now, in place of what was kept before. */
  save(): void {
    this.#lua.snapshot('kept')
    this.#saved = [...this.#applied]
    this.#savedLife = this.life
  }

  kill(): void {
    this.isDead = true
    for (const each of this.broken) each()
  }

  /** Kills one of several nodes, which keeps its data. */
  killNode(node: Node): void {
    node.isDead = true
    node.known.clear()
    this.hangUp(node)
  }

  /** Closes the connections to a node. */
  hangUp(node: Node): void {
    for (const each of this.broken) each(node)
  }

  /** Starts again, with the state that was saved last, or with none. */
  start(isEmpty: boolean): void {
    this.isDead = false
    for (const node of this.nodes) node.stillUntil = 0
    this.starts++
    this.#begin(isEmpty ? undefined : this.#savedLife)
    this.flushScripts()
    this.#lua.restore(isEmpty ? undefined : 'kept')
    this.#lose(isEmpty ? [] : this.#saved)
  }

  /** Moves its clock. Back by more than windows last is a loss of state. */
  moveClock(by: number): void {
    this.skew += by
    if (by < 0) this.#begin(this.life)
  }

  #refuse(): void {
    for (const command of WRITING) this.#lua.refuse(command)
    for (const refusal of ['oom', 'readonly'] as const) {
      const { words, commands } = REFUSALS[refusal]
      if (this.#refusals.has(refusal)) for (const command of commands) this.#lua.refuse(command, words)
    }
  }
}

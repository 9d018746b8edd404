import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { randomFrom } from '@sluice/harness/figures'
import type * as core from './program.js'
import { type Owner, TURN, type World } from './world.js'

/** Evaluates core once more: each call is a process of its own. */
export type Program = (...globals: readonly unknown[]) => void

/** What the bundle finds in place of the system, in this order. */
export const GLOBALS = (
  'exports module require globalThis process console setTimeout clearTimeout setInterval clearInterval setImmediate ' +
  'clearImmediate queueMicrotask Date performance Math crypto WeakRef'
).split(' ')

/** The wall time of a world when it begins, in milliseconds: a day, a month and a quarter end 6 s later. */
export const EPOCH_MS = Date.UTC(2026, 6, 1) - 6000

/** A simulated process: one evaluation of core with timers, clocks and randomness of its own. */
export class Process implements Owner {
  stillUntil = 0
  isDead = false
  readonly core: typeof core
  /** Timers that are set: those that keep it alive, and all. */
  readonly timers = new Set<Timer>()
  readonly warnings: string[] = []
  /** Microseconds in which its event loop was busy. */
  busy = 0
  readonly startedAt: number

  /** Starts it. `skew`: microseconds by which its wall clock is ahead. `seed` is that of its own randomness. */
  constructor(
    readonly world: World,
    readonly name: string,
    program: Program,
    seed: number,
    public skew: number,
  ) {
    this.startedAt = world.now
    const module = { exports: {} }
    const globals = this.#globals(randomFrom(seed))
    Object.assign(globals, { module, exports: module.exports, globalThis: globals })
    program.apply(
      globals,
      GLOBALS.map((each) => globals[each]),
    )
    this.core = module.exports as typeof core
  }

  /** Milliseconds of its monotonic clock. */
  now(): number {
    return (this.world.now - this.startedAt) / 1000
  }

  /** Stands still: its event loop is busy, or where it `isStopped` the whole process is. */
  stand(duration: number, isStopped: boolean): void {
    this.stillUntil = Math.max(this.stillUntil, this.world.now + duration)
    if (!isStopped) this.busy += duration
  }

  #globals(random: () => number): Record<string, unknown> {
    const { world } = this
    const wallMs = (): number => Math.floor(EPOCH_MS + (world.now + this.skew) / 1000)
    const bytes = (size: number): Buffer =>
      Buffer.from(Array.from({ length: size }, () => Math.floor(random() * 256)))
    const modules: Record<string, unknown> = {
      'node:buffer': { Buffer },
      'node:crypto': { createHash, randomBytes: bytes },
    }
    const set = (task: (...args: unknown[]) => void, ms: unknown, args: unknown[], repeats: boolean): Timer =>
      new Timer(this, () => task(...args), Number(ms) >= 1 ? Math.trunc(Number(ms)) : 1, repeats)
    const clear = (timer: Timer | undefined): void => timer?.cancel()
    const timers = {
      setTimeout: (task: () => void, ms?: number, ...args: unknown[]) => set(task, ms, args, false),
      setInterval: (task: () => void, ms?: number, ...args: unknown[]) => set(task, ms, args, true),
      setImmediate: (task: (...each: unknown[]) => void, ...args: unknown[]) =>
        new Timer(this, () => task(...args), 0, false),
      clearTimeout: clear,
      clearInterval: clear,
      clearImmediate: clear,
    }
    modules['node:timers'] = timers
    return {
      ...timers,
      queueMicrotask,
      require: (name: string) => {
        if (name in modules) return modules[name]
        throw new Error(`a simulated process has no ${name}`)
      },
      process: { emitWarning: (_: string, { code }: { code: string }) => this.warnings.push(code) },
      console: {},
      Date: class extends Date {
        constructor(...args: [number | string | Date] | []) {
          super(...((args.length > 0 ? args : [wallMs()]) as [number]))
        }
        static override now(): number {
          return wallMs()
        }
      },
      performance: {
        now: () => this.now(),
        eventLoopUtilization: () => ({
          idle: Math.max(0, this.now() - this.busy / 1000),
          active: 1 + this.busy / 1000,
        }),
      },
      Math: Object.create(Math, { random: { value: random } }) as Math,
      crypto: {
        getRandomValues(into: Uint32Array) {
          for (let i = 0; i < into.length; i++) into[i] = random() * 2 ** 32
          return into
        },
      },
      WeakRef: class<T> {
        constructor(readonly value: T) {}
        deref(): T {
          return this.value
        }
      },
    }
  }
}

/** A timer of a simulated process; of 0 ms, an immediate. */
class Timer {
  isRef = true
  #cancel = (): void => {}

  constructor(
    readonly process: Process,
    readonly task: () => void,
    readonly ms: number,
    readonly repeats: boolean,
  ) {
    process.timers.add(this)
    this.#set()
  }

  #set(): void {
    const turn = this.ms === 0 ? TURN.immediate : TURN.timer
    const { process } = this
    const fire = (): void => {
      if (this.repeats) this.#set()
      else process.timers.delete(this)
      this.task()
    }
    this.#cancel = process.world.after(this.ms * 1000, process, fire, turn)
  }

  cancel(): void {
    this.process.timers.delete(this)
    this.#cancel()
  }
  ref(): this {
    this.isRef = true
    return this
  }
  unref(): this {
    this.isRef = false
    return this
  }
  hasRef(): boolean {
    return this.isRef
  }
}

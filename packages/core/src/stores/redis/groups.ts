import type { Policy } from '../../algorithms/contract/policy.js'
import type { Penalty } from '../penalty.js'
import { composeScript } from './script/compose.js'
import { GroupCommit } from './group-commit.js'
import type { ScriptRunner } from './script/script-runner.js'

export interface GroupsOptions {
  readonly gathers: boolean
  /** Most lists of shapes, each penalty counted, whose scripts are held, not counting those with calls in flight. */
  readonly most: number
}

/** The scripts of a store by their shapes and penalty, each with its calls. Beyond `most`, the least recently used one is dropped. */
export class Groups {
  readonly #runner: ScriptRunner
  readonly #options: GroupsOptions
  readonly #byShapes = new Map<string, Held>()
  #uses = 0
  #isClosed = false

  constructor(runner: ScriptRunner, options: GroupsOptions) {
    this.#runner = runner
    this.#options = options
  }

  get size(): number {
    return this.#byShapes.size
  }

  /** The group that sends the calls of the script for these shapes and this penalty. */
  of(shapes: string, policies: readonly Policy[], penalty?: Penalty): GroupCommit {
    const id = penalty ? `${shapes} ${JSON.stringify(penalty)}` : shapes
    let held = this.#byShapes.get(id)
    if (!held) {
      const script = composeScript(policies, penalty)
      const group = new GroupCommit(this.#runner.transport(script), { gathers: this.#options.gathers })
      if (this.#isClosed) group.close()
      this.#byShapes.set(id, (held = { script, group, used: 0 }))
    }
    held.used = ++this.#uses
    return held.group
  }

  /** Drops idle scripts while there are too many, but not the one used last. Returns whether one was dropped. */
  trim(): boolean {
    const { size } = this.#byShapes
    while (this.#byShapes.size > this.#options.most) {
      let oldest: string | undefined
      let used = this.#uses
      for (const [shapes, held] of this.#byShapes) {
        if (held.used >= used || !held.group.isIdle) continue
        oldest = shapes
        used = held.used
      }
      if (oldest === undefined) break
      this.#runner.forget(this.#byShapes.get(oldest)!.script)
      this.#byShapes.delete(oldest)
    }
    return this.#byShapes.size < size
  }

  close(): void {
    this.#isClosed = true
    for (const { group } of this.#byShapes.values()) group.close()
  }
}

interface Held {
  readonly script: string
  readonly group: GroupCommit
  used: number
}

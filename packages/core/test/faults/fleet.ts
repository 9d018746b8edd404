import { build } from 'esbuild'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Job, Result } from './caller.js'
import type { Told } from './fleet-member.js'

/** Node processes that call limiters against one Redis, forked from one bundle of `caller.ts`. */
export interface Fleet {
  readonly size: number
  /** A job for each process. When all are ready, `onReady` is waited for, and they begin at the same moment. */
  run(jobs: readonly Job[], onReady?: () => unknown): Promise<Result[]>
  end(): Promise<void>
}

export interface FleetOptions {
  /** Client packages that the processes do not find. */
  readonly missing?: readonly string[]
  /** Environment of each process beside this one's; as many processes as there are entries. */
  readonly environments: readonly Readonly<Record<string, string>>[]
}

/** A fleet of this size, with nothing in its environment. */
export function processes(count: number): FleetOptions {
  return { environments: Array.from({ length: count }, () => ({})) }
}

export async function startFleet({ missing = [], environments }: FleetOptions): Promise<Fleet> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-fleet-'))
  const program = join(folder, 'caller.cjs')
  await bundle('packages/core/test/faults/caller.ts', program, missing)
  const members = environments.map((env) =>
    fork(program, { env: { ...process.env, ...env }, serialization: 'advanced' }),
  )
  return {
    size: members.length,
    async run(jobs, onReady) {
      await Promise.all(members.map((member, i) => ask(member, { job: jobs[i]! })))
      await onReady?.()
      const told = await Promise.all(members.map((member) => ask(member, 'go')))
      return told.map(({ result }) => result as Result)
    },
    async end() {
      await Promise.all(members.map(exit))
      rmSync(folder, { recursive: true })
    },
  }
}

/** A process by itself, which may be made of other sources than these. */
export interface Member {
  prepare(job: object): Promise<void>
  go(): Promise<unknown>
  end(): Promise<void>
}

/** `sources` is the folder that holds `packages/core/src`. */
export async function startMember(entry: string, sources: string): Promise<Member> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-member-'))
  const program = join(folder, 'member.cjs')
  await bundle(entry, program, [], sources)
  const member = fork(program, { serialization: 'advanced' })
  return {
    async prepare(job) {
      await ask(member, { job })
    },
    async go() {
      return (await ask(member, 'go')).result
    },
    async end() {
      await exit(member)
      rmSync(folder, { recursive: true })
    },
  }
}

/** The sources in one file, whether Jest runs this or a bundle does. Both are started in the root of the repository. */
async function bundle(
  entry: string,
  outfile: string,
  missing: readonly string[],
  sources = resolve('.'),
): Promise<void> {
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    ignoreAnnotations: true, // package.json says that nothing has side effects; caller-clock.ts is one
    external: [...missing],
    alias: {
      '@sluice/core/redis': sourceOf('./redis', sources),
      '@sluice/core': sourceOf('.', sources),
    },
  })
}

/** The source of an entry point, which another commit may have at another place. */
function sourceOf(entry: string, sources: string): string {
  const core = join(sources, 'packages/core')
  const { exports } = JSON.parse(readFileSync(join(core, 'package.json'), 'utf8')) as {
    exports: Record<string, { require: { types: string } }>
  }
  return join(core, exports[entry]!.require.types.replace('dist/cjs', 'src').replace(/\.d\.ts$/, '.ts'))
}

/** Rejects with what went wrong there, and when the process ends instead of answering. */
async function ask(member: ChildProcess, message: 'go' | { readonly job: object }): Promise<Told> {
  const ended = new AbortController()
  const exited = once(member, 'exit', { signal: ended.signal }).then(([code]) => {
    throw new Error(`a process of the fleet ended with ${String(code)}`)
  })
  exited.catch(() => {})
  member.send(message)
  const [told] = (await Promise.race([once(member, 'message', { signal: ended.signal }), exited])) as [Told]
  ended.abort()
  if (told.error !== undefined) throw new Error(`in a process of the fleet: ${told.error}`)
  return told
}

async function exit(member: ChildProcess): Promise<void> {
  if (member.exitCode !== null || member.signalCode !== null) return
  const gone = once(member, 'exit')
  member.kill('SIGKILL')
  await gone
}

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { onSources } from '@sluice/harness/processes'
import type { Job, Result } from './workers/caller.js'
import type { FleetReply, FleetWarning } from './workers/fleet-member.js'

/** Node processes that run `caller.ts`: they call limiters against one Redis. */
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

/** The options of a fleet of so many processes, with nothing added to their environment. */
export function processes(count: number): FleetOptions {
  return { environments: Array.from({ length: count }, () => ({})) }
}

/** Starts a process for each environment. `missing` are packages that none of them finds. */
export async function startFleet({ missing = [], environments }: FleetOptions): Promise<Fleet> {
  const members = environments.map((env) =>
    start('packages/faults/src/workers/caller.ts', { ...env, SLUICE_MISSING: missing.join() }),
  )
  return {
    size: members.length,
    async run(jobs, onReady) {
      await Promise.all(members.map((member, i) => ask(member, { job: jobs[i]! })))
      await onReady?.()
      const replies = await Promise.all(members.map((member) => ask(member, 'go')))
      return replies.map(({ result }) => result as Result)
    },
    async end() {
      await Promise.all(members.map(exit))
    },
  }
}

/** A process by itself, which may be made of other sources than these. */
export interface Member {
  prepare(job: object): Promise<void>
  go(): Promise<unknown>
  /** Stops the process, or lets it go on. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  end(): Promise<void>
}

/**
 * Starts a process that runs a program and takes jobs. `sources` is the folder whose `packages/core/src` it uses, for a
 * process of another version. `missing` are packages that it does not find.
 */
export async function startMember(
  program: string,
  sources: string,
  missing: readonly string[] = [],
): Promise<Member> {
  const member = start(program, { SLUICE_SOURCES: sources, SLUICE_MISSING: missing.join() })
  return {
    async prepare(job) {
      await ask(member, { job })
    },
    async go() {
      return (await ask(member, 'go')).result
    },
    signal(signal) {
      member.kill(signal)
    },
    async end() {
      await exit(member)
    },
  }
}

/** Starts a program of TypeScript as a process that can be sent messages. Its warnings become warnings of this process. */
function start(program: string, env: Readonly<Record<string, string>>): ChildProcess {
  const member = fork(program, {
    execArgv: [...onSources()],
    env: { ...process.env, ...env },
    serialization: 'advanced',
  })
  return member.on('message', (message: FleetReply | FleetWarning) => {
    if ('warning' in message) process.emitWarning(message.warning, message.options)
    else member.emit('reply', message)
  })
}

/** Rejects with what went wrong there, and when the process ends instead of answering. */
async function ask(member: ChildProcess, message: 'go' | { readonly job: object }): Promise<FleetReply> {
  const ended = new AbortController()
  const exited = once(member, 'exit', { signal: ended.signal }).then(([code]) => {
    throw new Error(`a process of the fleet ended with ${String(code)}`)
  })
  exited.catch(() => {})
  member.send(message)
  const [reply] = (await Promise.race([once(member, 'reply', { signal: ended.signal }), exited])) as [
    FleetReply,
  ]
  ended.abort()
  if (reply.error !== undefined) throw new Error(`in a process of the fleet: ${reply.error}`)
  return reply
}

/** Kills a process, and resolves when it is gone. */
async function exit(member: ChildProcess): Promise<void> {
  if (member.exitCode !== null || member.signalCode !== null) return
  const gone = once(member, 'exit')
  member.kill('SIGKILL')
  await gone
}

import { type ChildProcess, spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import type { Socket } from 'node:net'

/*
 * No server outlives this process. An exit handler kills each by its handle, but runs neither when this process is
 * killed nor inside Jest, which gives tests a copy of `process`. So a small shell waits for the end of its input, which
 * comes however this process ends, and then kills the processes that it was given to guard and not asked to forget.
 */
const SCRIPT = `
  while read -r sign pid folder; do
    for entry do
      shift
      [ "\${entry%%:*}" = "$pid" ] || set -- "$@" "$entry"
    done
    [ "$sign" = - ] || set -- "$@" "$pid:$folder"
  done
  for entry do
    kill -9 "\${entry%%:*}"
    rm -rf -- "\${entry#*:}"
  done
`

const guarded = new Map<ChildProcess, string>()
let shell: ChildProcess | undefined

/** Kills `child` and removes its `folder` should this process end before `release` is called. */
export function guard(child: ChildProcess, folder: string): void {
  if (guarded.size === 0) process.on('exit', killAll)
  shell ??= startShell()
  shell.stdin!.write(`+ ${child.pid} ${folder}\n`)
  guarded.set(child, folder)
}

/** Call it as soon as the child has exited, before its process id can be given to another. */
export function release(child: ChildProcess): void {
  if (!guarded.delete(child)) return
  shell?.stdin!.write(`- ${child.pid}\n`)
  if (guarded.size > 0) return
  shell?.stdin!.end()
  shell = undefined
  process.off('exit', killAll)
}

/** In a session of its own, so that Ctrl-C in a terminal does not end it first; keeps no process alive. */
function startShell(): ChildProcess {
  const started = spawn('sh', ['-c', SCRIPT], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  started.on('error', () => {})
  started.stdin.on('error', () => {})
  started.unref()
  ;(started.stdin as Socket).unref()
  return started
}

/** Kills every process that is guarded, and removes its folder. */
function killAll(): void {
  for (const [child, folder] of guarded) {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

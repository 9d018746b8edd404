import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** A built example that runs as a program of its own. */
export interface Program {
  readonly child: ChildProcess
  readonly lines: AsyncIterator<string>
}

/** @param path of its folder and file: 'koa/server'. */
export function start(path: string, env: NodeJS.ProcessEnv): Program {
  const child = spawn(process.execPath, [pathOf(path)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  })
  return { child, lines: createInterface(child.stdout)[Symbol.asyncIterator]() }
}

export function pathOf(path: string): string {
  return join(__dirname, '../dist', `${path}.js`)
}

export async function nextLine({ lines }: Program): Promise<string> {
  const { value, done } = await lines.next()
  if (done === true) throw new Error('the example ended without a further line')
  return value
}

/** Resolves to the exit code, or null where a signal ended it. */
export async function interrupt({ child }: Program): Promise<number | null> {
  child.kill('SIGINT')
  const [code] = (await once(child, 'exit')) as [number | null]
  return code
}

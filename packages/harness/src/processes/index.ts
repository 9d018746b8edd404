import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Arguments with which Node runs the sources, as Jest does. Whatever runs tests is started in the root of the repository. */
export function onSources(root = resolve('.')): readonly string[] {
  return ['--import', pathToFileURL(resolve(root, 'scripts/sources/register.js')).href]
}

/**
 * Runs a program that writes 'ready' when it is in the middle of things, goes on once something is written to it, and writes
 * the milliseconds from its close() to its end. `onReady` is called in between. Returns them; Infinity if it fails or is killed
 * after 20 s.
 */
export async function msToEnd(program: string, args: readonly string[], onReady = () => {}): Promise<number> {
  const child = spawn(process.execPath, [...onSources(), program, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const killed = setTimeout(() => child.kill('SIGKILL'), 20_000)
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
    if (output !== 'ready') return
    onReady()
    child.stdin.write('go')
  })
  const [code] = (await once(child, 'close')) as [number | null]
  clearTimeout(killed)
  return code === 0 ? Number(output.replace('ready', '')) : Infinity
}

import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'

const MAIN = join(__dirname, '../dist/main.js')

/** The built demo, as `npm start` starts it. */
export interface Program {
  readonly child: ChildProcess
  readonly exitCode: Promise<number | null>
  output(): string
  errors(): string
  /** Resolves as soon as the output matches. */
  printed(pattern: RegExp): Promise<RegExpExecArray>
}

export function start(args: readonly string[]): Program {
  const child = spawn(process.execPath, [MAIN, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NO_COLOR: '1' },
  })
  let output = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const exitCode = new Promise<number | null>((resolve) => child.once('close', resolve))
  return {
    child,
    exitCode,
    output: () => output,
    errors: () => errors,
    printed(pattern) {
      return new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(output)
          if (match) resolve(match)
        }
        child.stdout.on('data', look)
        void exitCode.then(() => reject(new Error(`ended without printing ${pattern}: ${output}${errors}`)))
      })
    },
  }
}

import { PassThrough } from 'node:stream'
import { main } from '../src/terminal/main.js'

export interface Run {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  /** The store, in SLUICE_STORE. */
  readonly url: string
  /** What is typed, on a terminal; without it stdin is none. */
  readonly answer?: string
  /** Whether stderr is a terminal, which is shown the progress. */
  readonly isTerminal?: boolean
  /** Of stdout, as a terminal has them. */
  readonly columns?: number
  /** What the command waits for when Ctrl-C comes: an answer on the terminal, or the store once it has printed a first line. */
  readonly interruptedAt?: 'answer' | 'print'
}

/** Runs a command on a store in this process. */
export async function runCommand(
  args: readonly string[],
  { url, answer = '', isTerminal = false, columns, interruptedAt }: RunOptions,
): Promise<Run> {
  const [stdout, stderr, stdin] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const streams = {
    stdout: Object.assign(stdout, { columns }),
    stderr: Object.assign(stderr, { isTTY: isTerminal }),
    stdin: Object.assign(stdin, { isTTY: answer !== '' || interruptedAt === 'answer' }),
  }
  for (const [name, stream] of Object.entries(streams))
    jest.spyOn(process, name as 'stdout', 'get').mockReturnValue(stream as unknown as typeof process.stdout)
  const interrupt = () => void process.emit('SIGINT')
  if (interruptedAt === 'answer') stdin.once('resume', interrupt)
  else stdin.end(answer)
  if (interruptedAt === 'print') stdout.once('readable', interrupt)
  process.env['SLUICE_STORE'] = url
  try {
    const status = await main(['node', 'sluice', ...args], '0.0.0')
    return { status, stdout: String(stdout.read() ?? ''), stderr: String(stderr.read() ?? '') }
  } finally {
    delete process.env['SLUICE_STORE']
    jest.restoreAllMocks()
  }
}

import { cac } from 'cac'
import { flagOf, type Given, marked, refuseMisuse, unmarked, usageError } from './arguments.js'
import { print } from './door.js'

/** A command: gets its files and options, and returns the exit code. */
export type Run = (files: readonly string[], given: Given, signal: AbortSignal) => Promise<number>

/** The commands on logs and files, or those on a store, loaded when one is run, so that a start without one costs no time. */
const loadCommands = (name: string): Promise<Readonly<Record<string, Run>>> =>
  ON_STORES.some(([usage]) => nameOf(usage) === name) ? import('./operate.js') : import('./commands.js')

const EXIT = { done: 0, usage: 2, unreadable: 3, defect: 70, interrupted: 130 }

/**
 * Runs the command that the arguments name, and returns the exit code of the process: 0, 1 (a condition that the command checks),
 * 2 for wrong arguments, 3 for input that cannot be read, 70 for a defect, and 130 after Ctrl-C. `version` is what --version
 * prints; `load` imports the commands. `marked` puts a mark before files and values, because the parser would read '010' as a
 * number; `unmarked` takes the mark off again.
 */
export async function main(argv: readonly string[], version: string, load = loadCommands): Promise<number> {
  const interrupt = new AbortController()
  const stop = (): void => interrupt.abort()
  const isHashed = argv.some((arg) => marked(arg) === '--hashKeys')
  process.once('SIGINT', stop)
  process.stdout.on('error', (error) => process.exit(failure(error, isHashed)))
  try {
    const cli = cac('sluice').option('--json', 'Print JSON').help().version(version)
    for (const [usage, about, example, flags] of COMMANDS) {
      const command = cli.command(usage, about).example(`  $ sluice ${example}`)
      for (const [flag, text] of flags) command.option(flag, text)
      command.action(async (...all: unknown[]) => {
        const given = all.pop() as Given // a command without files gets nothing before it
        const paths = [...all, given['--']]
          .flat()
          .filter((path) => path !== undefined)
          .map(unmarked)
        return (await load(command.name))[command.name]!(paths, given, interrupt.signal)
      })
    }
    const markedArgs = argv.map((arg) => (NAMES.includes(arg) ? arg : marked(arg)))
    const { args, options } = cli.parse(markedArgs, { run: false })
    if (options['help'] || options['version']) return EXIT.done
    const { matchedCommand: command } = cli
    if (!command && args[0] !== undefined) throw await unknown('command', unmarked(args[0]), NAMES)
    const known = [...(command?.options ?? []), ...cli.globalCommand.options].flatMap(({ names }) => names)
    const other = Object.keys(options).find((name) => name !== '--' && !known.includes(name))
    if (other !== undefined) throw await unknown('option', flagOf(other), known.map(flagOf))
    if (command) refuseMisuse(argv, args, options)
    else cli.outputHelp()
    const code = (await cli.runMatchedCommand()) as number | undefined
    return interrupt.signal.aborted ? EXIT.interrupted : (code ?? EXIT.done)
  } catch (error) {
    return interrupt.signal.aborted ? EXIT.interrupted : failure(error as Error, isHashed)
  } finally {
    process.off('SIGINT', stop)
  }
}

/** The error for a command or an option that does not exist. It suggests the nearest of the existing `names`, or the help. */
async function unknown(kind: 'command' | 'option', name: string, names: readonly string[]): Promise<Error> {
  const { nearestTo } = await import('@sluice/core/internal')
  const near = name.length > 2 ? nearestTo(name, names) : undefined
  const advice = near === undefined ? "'sluice --help' lists all" : `did you mean '${near}'?`
  return usageError(`there is no ${kind} '${name}'; ${advice}`)
}

/**
 * Prints an error, and returns the exit code for it. For wrong arguments (2) and unreadable input (3) it prints the message, for any
 * other error, a defect (70), the stack. A closed output (EPIPE) is no failure. A message may quote a line of a log, which is left
 * out if keys are to be shown as digests (`isHashed`).
 */
function failure(error: NodeJS.ErrnoException & { lines?: readonly string[] }, isHashed: boolean): number {
  const { name, code = '', lines } = error
  if (code === 'EPIPE') return EXIT.done // a reader that has seen enough, such as `head`, is no failure
  const text = unmarked(error.message)
  const message = isHashed ? text.replace(/ The first line is: .*/s, '') : text
  const isUsage = /^(Usage|CAC|Policy|Input)Error$/.test(name)
  const isInput = /^(NoLog|Store)Error$/.test(name) || /^(E[A-Z]+|Z_\w+)$/.test(code)
  const stack = `a defect of sluice, please report it: ${error.stack ?? message}`.split('\n')
  const [first, ...rest] = isUsage || isInput ? (lines ?? [message]) : stack
  print(process.stderr, [`sluice: ${first}`, ...rest])
  return isUsage ? EXIT.usage : isInput ? EXIT.unreadable : EXIT.defect
}

type Flags = readonly (readonly [flag: string, about: string])[]

const LOGS: Flags = [
  ['--by <caller>', 'ip, header:NAME or field:PATH (default: ip)'],
  ['--where <conditions>', 'Calls that count: path^=/api,method=POST'],
  ['--cost <part>', 'Cost of a call: field:PATH (default: 1)'],
  ['--trust-proxy <proxies>', 'Proxies that add to X-Forwarded-For (default: 0)'],
  ['--callers <form>', 'addresses or names (default: addresses)'],
  ['--format <name>', 'common, json, w3c ... (default: found)'],
  ['--field <name=path>', 'Place of time, ip ... in lines of JSON, repeatable'],
  ['--skew <duration>', 'How far back times may run (default: 5s)'],
  ['--max-unread <percent>', 'Exit 3 beyond this share of calls (default: 1)'],
  ['--hash-keys', 'Print digests of callers, without a salt'],
]

const SUGGEST: Flags = [
  ['--windows <list>', 'Windows of the table (default: 1s,10s,1m,10m,1h,1d)'],
  ['--limits <list>', 'Limits of the table (default: auto)'],
  ['--algorithm <name>', 'As policy files name it (default: slidingLog)'],
  ['--burst <units>', 'Most units at once (default: the limit)'],
  ['--untouched <percent>', 'Callers whom a limit leaves alone (default: 99.9)'],
]

const REPLAY: Flags = [
  ['--against <file>', "Another policy file, or the log's own 429s: log"],
  ['--fail-if <condition>', "Exit 1 if 'callers > 5', 'lockout > 1h' ..."],
  ['--plan <name>', 'Policies of this plan, where a limiter has it'],
  ['--out <file>', 'Write each decision as a line of JSON'],
]

const CHECK: Flags = [
  ['--against <file>', 'Report what is lost when it replaces this file'],
  ['--for <place>', 'app: report what an application cannot do'],
  ['--strict', 'Exit 1 for smells too'],
]

const STORE: Flags = [
  ['--store <url>', 'redis://, rediss:// or postgres:// (or SLUICE_STORE)'],
  ['--policies <file>', 'Limits and whose calls they count'],
  ['--limiter <name>', 'This limiter alone (default: all of the file)'],
  ['--prefix <text>', 'Of keys in Redis (default: sluice)'],
  ['--groups <number>', 'As the processes divide keys of a Cluster'],
  ['--table <name>', 'In Postgres (default: sluice)'],
  ['--schema <name>', 'Of the table in Postgres'],
]

const KEY = ['--key <key>', 'As decisions report it, in place of a caller'] as const

const ACT: Flags = [
  KEY,
  ['--reason <text>', 'Why: kept with a block or an exemption'],
  ['--as <name>', 'Who acts (default: the user of this machine)'],
  ['--dry-run', 'Say what it would do, and do nothing'],
  ['--yes', 'Carry it out without asking'],
]

const WHY: Flags = [
  KEY,
  ['--id <id>', 'Of a denial, as its answer has it, in place of a key'],
  ['--cost <units>', 'Cost of the call (default: 1)'],
  ['--plan <name>', 'Under the policies of this plan'],
]

type Commands = readonly (readonly [usage: string, about: string, example: string, flags: Flags])[]

// prettier-ignore
const ON_STORES: Commands = [
  ['why [key]', 'Say why a caller is refused, and what lets him pass', 'why 203.0.113.7 --policies policies.json', [...WHY, ...STORE]],
  ['top', 'List the keys with most denials, as posted', 'top --limiter api', STORE],
  ['blocked', 'List the keys that are blocked', 'blocked --policies policies.json', STORE],
  ['overrides', 'List overrides, blocks and holds with who made them', 'overrides', STORE],
  ['unblock [key]', 'End a block', "unblock 203.0.113.7 --reason 'ticket 42'", [...ACT, ...STORE]],
  ['reset [key]', 'Forget what a caller used, and his block', "reset ann --reason 'ticket 42'", [...ACT, ...STORE]],
  ['block [key]', 'Deny every call of a caller for a time', "block 203.0.113.7 --for 1h --reason 'scrapes'", [['--for <duration>', 'How long: 10m, 1h, 7d'], ...ACT, ...STORE]],
  ['exempt [key]', 'Let every call of a caller pass for a time', "exempt 203.0.113.7 --for 1h --reason 'ticket 42'", [['--for <duration>', 'How long: 10m, 1h, 7d'], ['--remove', 'End his exemption or other override'], ...ACT, ...STORE]],
]

// prettier-ignore
const COMMANDS: Commands = [
  ['suggest [...logs]', 'Suggest limits from access logs; no file or - reads stdin', 'suggest access.log access.log.1.gz --windows 1m,1h', [...SUGGEST, ...LOGS]],
  ['replay [...files]', 'Replay logs under a policy file, which comes last', "replay access.log policies.json --fail-if 'denied > 0.1%'", [...REPLAY, ...LOGS]],
  ['option <name>', 'Find what an option of another package is called here', 'option keyGenerator', []],
  ['check <policies>', 'Check a policy file; - reads stdin', 'check policies.json --against current.json --strict', CHECK],
  ...ON_STORES,
]

const nameOf = (usage: string): string => usage.split(' ', 1)[0]!
const NAMES = COMMANDS.map(([usage]) => nameOf(usage))

/*
 * Arguments before anything is made of them. The parser would drop a bare `-`, and make numbers of '', '1e3' and '010', so a mark
 * stands before each argument that is no flag.
 */

/** No argument can hold it. */
const MARK = '\0'

/** The path that stands for stdin. */
export const STDIN = '-'
export const STDIN_TWICE = 'stdin (-) is given twice, and can be read once'

/** Options as they were parsed: a value is a marked text, and a list of these where it was given several times. */
export type Given = Readonly<Record<string, unknown>>

/**
 * An argument as the parser of flags gets it. A mark, which no argument can contain, is put before an argument that is no
 * flag, and before the value behind the `=` of a flag: the parser would read '1e3' or '010' as numbers. A flag is written in
 * camel case, `--hashKeys` for `--hash-keys`, as only by that name the parser knows whether a value follows.
 */
export function marked(arg: string): string {
  const inCamelCase = arg.replace(/(?<=^--[^=]*\w)-\w/g, (part) => part[1]!.toUpperCase())
  return inCamelCase.replace(/^(--[^=]+=|(?!-.))/s, `$1${MARK}`)
}

/** An argument as the user gave it: without the mark that `marked` put before it. */
export const unmarked = (arg: unknown): string => String(arg).replaceAll(MARK, '')

/** The texts that were given for an option, without their marks, in order; none if it was not given. */
export function optionTexts(given: Given, name: string): readonly string[] {
  return [given[name] ?? []].flat().map(unmarked)
}

/** The flag of an option: --trust-proxy for trustProxy. */
export const flagOf = (name: string): string =>
  (name.length > 1 ? '--' : '-') + name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** A word of a command line to be copied: in quotes, unless a shell takes it as it is. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** The error for arguments that are not valid, by which the command ends with its message and exit code 2. */
export const usageError = (message: string): Error =>
  Object.assign(new Error(message), { name: 'UsageError' })

/**
 * Refuses arguments that cannot be meant, whatever the command does with them: an empty value, an option given twice unless it
 * takes a list, stdin (`-`) read twice, and a value for a flag that takes none, as in `--json=x`. The parser puts such a value among
 * the `files`: it is a file that is not one of the arguments themselves (`argv`).
 * @throws {UsageError} for the first of these that is found.
 */
export function refuseMisuse(argv: readonly string[], files: readonly string[], given: Given): void {
  const empty = argv.findIndex((arg) => /^(--[^=]+=)?\s*$/.test(arg))
  if (empty >= 0) throw usageError(`'${argv.slice(empty - 1, empty + 1).join(' ')}' has no value`)
  const twice = Object.keys(given).find((name) => Array.isArray(given[name]) && !LISTS.includes(name))
  if (twice !== undefined) throw usageError(`${flagOf(twice)} is given more than once`)
  const inputs = argv.filter((arg) => /^(--against=)?-$/.test(arg))
  if (inputs.length > 1) throw usageError(STDIN_TWICE)
  const value = files.map(unmarked).find((file) => !argv.includes(file))
  if (value !== undefined) throw usageError(`'${value}' is given to a flag that takes no value`)
}

/** The options that may be given several times, and the arguments behind a bare `--`. */
const LISTS = ['field', 'failIf', '--']

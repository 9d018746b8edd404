import * as policies from '@sluice/policies'
import { text as textOf } from 'node:stream/consumers'
import { STDIN, usageError } from './arguments.js'
import { bytesOf } from './files.js'

/** Of a policy file no more bytes are read: where a log stands in its place, it may be larger than memory. */
export const LARGEST = 2 ** 22

/** A line of text for each problem of a policy file, as compilers print theirs: `file:line: severity CODE at place: message`. */
export function linesOf(path: string, problems: readonly policies.PolicyProblem[]): string[] {
  const file = path === STDIN ? 'stdin' : path
  return problems.map(({ line, path: at, severity, code, message }) => {
    return `${file}:${line}: ${severity} ${code}${at === '' ? '' : ` at ${at}`}: ${message}`
  })
}

/**
 * Reads policy files that must have no errors, and returns what each says. A faulty file that does not even have the word
 * `limiters` is probably a log in the wrong place: the error then shows with `example` how the command is called.
 * @throws {Error} UsageError for such a log; EPOLICIES with a line for each error of each file.
 */
export async function withoutErrors(paths: readonly string[], signal: AbortSignal, example: string) {
  const texts = await Promise.all(paths.map((path) => textOf(bytesOf(path, signal, LARGEST))))
  const files = texts.map((text) => policies.readPolicies(text))
  const log = paths.find((_, i) => files[i]!.errors.length > 0 && !texts[i]!.includes('"limiters"'))
  if (log !== undefined) throw usageError(`expected a policy file ${example}, got '${log}'`)
  const lines = paths.flatMap((path, i) => linesOf(path, files[i]!.errors))
  if (lines.length > 0) throw Object.assign(new Error(lines[0]), { code: 'EPOLICIES', lines })
  return files
}

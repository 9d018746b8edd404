import { sharedInProcess } from './contract.js'

/** Writes a warning of the process with this code, or writes it to the console in a runtime without such warnings. */
export function warnProcess(code: string, text: string): void {
  const hasWarnings = typeof process === 'object' && typeof process.emitWarning === 'function'
  if (hasWarnings) process.emitWarning(text, { type: 'SluiceWarning', code })
  else console.warn(`SluiceWarning [${code}] ${text}`)
}

/**
 * Writes a warning with this code to the process, but only the first for each `id`, which is the code unless it is given. The
 * ids are kept in a set that all copies of this package in the process share (`sharedInProcess`), such as its ESM and its CommonJS
 * build, so that no second copy repeats the warning.
 */
export function warnProcessOnce(code: string, text: string, id = code): void {
  const warned = sharedInProcess('warned', () => new Set<string>())
  if (!warned.has(id)) warnProcess(code, text)
  warned.add(id)
}

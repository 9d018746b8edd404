import { inCommon } from './contract.js'

/** Writes a warning of the process, or to the console where there are none. */
export function warnProcess(code: string, text: string): void {
  const hasWarnings = typeof process === 'object' && typeof process.emitWarning === 'function'
  if (hasWarnings) process.emitWarning(text, { type: 'SluiceWarning', code })
  else console.warn(`SluiceWarning [${code}] ${text}`)
}

/** Writes a warning once in this process for its code, or for `id`. */
export function warnProcessOnce(code: string, text: string, id = code): void {
  const warned = inCommon('warned', () => new Set<string>())
  if (!warned.has(id)) warnProcess(code, text)
  warned.add(id)
}

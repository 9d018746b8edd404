/** Writes a warning of the process, or to the console where there are none. */
export function warnProcess(code: string, text: string): void {
  if (typeof process === 'object' && typeof process.emitWarning === 'function') {
    process.emitWarning(text, { type: 'SluiceWarning', code })
  } else {
    console.warn(`SluiceWarning [${code}] ${text}`)
  }
}

/**
 * The lines of a source that are neither blank nor comment alone. A comment that shares a line with code is counted with it, also its
 * other lines.
 * @param {string} text
 */
export function codeLines(text) {
  const block = String.raw`/\*(?:(?!\*/)[^])*\*/|<!--(?:(?!-->)[^])*-->`
  const code = text.replaceAll(new RegExp(String.raw`^\s*(?:${block}|//.*)\s*$`, 'gm'), '')
  return code.split('\n').filter((line) => line.trim() !== '').length
}

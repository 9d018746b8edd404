/**
 * Whether Node's list of names and values as they were received holds a header; `name` is in lower case. Unlike `headers`,
 * the list is there without being parsed.
 */
export function hasRawHeader(rawHeaders: readonly string[], name: string): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const received = rawHeaders[i]!
    if (received.length === name.length && received.toLowerCase() === name) return true
  }
  return false
}

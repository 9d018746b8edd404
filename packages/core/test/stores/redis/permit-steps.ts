/** The step that a line of MONITOR asks of lua/semaphore.lua: its last argument begins with the number, as a double. */
export function stepOf(line: string): readonly string[] {
  if (line.includes(' lua]') || !/"evalsha"/i.test(line)) return []
  const [, bytes] = /"(?:\\x00){6}(\\x00\\x00|\\xf0\?|\\x00@|\\b@|\\x10@)/.exec(line) ?? []
  const steps = {
    '\\x00\\x00': 'take',
    '\\xf0?': 'wait',
    '\\x00@': 'poll',
    '\\b@': 'renew',
    '\\x10@': 'release',
  }
  return [steps[bytes as keyof typeof steps] ?? line]
}

/** Marks the options that one limited client passes to another, so that only the outermost retries. Both builds know it. */
const NESTED: unique symbol = Symbol.for('sluice.outbound.nested') as never

export function isNested(options: unknown): boolean {
  return (
    typeof options === 'object' && options !== null && (options as { [NESTED]?: boolean })[NESTED] === true
  )
}

/** A copy of the options with the mark, which further copies keep. */
export function nested<T extends object>(options: T | undefined): T {
  const copy: Record<PropertyKey, unknown> = {}
  // Also the properties that it inherits: a Request has all of its own in its prototype, and fetch takes one as init.
  for (const name in options) copy[name] = options[name]
  return Object.assign(copy, options, { [NESTED]: true })
}

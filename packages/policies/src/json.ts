/*
 * JSON with the line of every value, which messages about a policy file name. JSON.parse keeps no positions.
 */

/** The names and indices that lead to a value. They are never joined and taken apart again: a name may hold any character. */
export type PolicyPath = readonly (string | number)[]

/** A JSON text as a value. */
export interface Located {
  readonly value: unknown
  /** The line of the value at a path such as `['limiters', 'api']`, or of the nearest value around it. */
  readonly lineOf: (path: PolicyPath) => number
  /** The paths of names that stand twice in one object. */
  readonly repeated: readonly PolicyPath[]
}

/** The line of a value, and the positions of the values in it. */
interface Position {
  readonly line: number
  inner?: Map<string | number | undefined, Position>
}

/** Thrown for a text that is not JSON, with the line of the fault, from 1. */
export class JsonError extends Error {
  line = 1
}

/**
 * Reads a JSON text as a value, and notes for messages about it on which line each value stands, and which names an object has
 * twice. `lineOf` takes a path; for one that the text does not have, it returns the line of the nearest value around it.
 * @throws {JsonError} for a text that is not JSON, or that nests deeper than 32 levels.
 */
export function parseLocated(text: string): Located {
  const parser = new Parser(text.replace(/^\ufeff/, ''))
  const root: Position = { line: 1 }
  const value = parser.value([], root)
  if (parser.token !== '') parser.fail('the end of the file')
  const lineOf = (path: PolicyPath): number => {
    let position = root.inner!.get(undefined)! // the value as a whole has no name
    for (const name of path) {
      const inner = position.inner?.get(name)
      if (!inner) break
      position = inner
    }
    return position.line
  }
  return { value, lineOf, repeated: parser.repeated }
}

/** A path as messages show it: `limiters.api.policies[0]`, with an odd name in quotes: `limiters["a.b"]`. */
export function shownPath(path: PolicyPath): string {
  const parts = path.map((part) => {
    if (typeof part === 'number') return `[${part}]`
    return /^[\w$-]+$/.test(part) ? `.${part}` : `[${JSON.stringify(part)}]`
  })
  return parts.join('').replace(/^\./, '')
}

/** White space, then a text, a mark, or a word such as a number. */
const TOKEN = /(\s*)("(?:[^"\\\n]|\\.)*"|[{}[\],:]|[^\s{}[\],:]*)/y
const DEEPEST = 32

class Parser {
  readonly repeated: PolicyPath[] = []
  /** The token at hand; '' at the end. */
  token = ''
  #at = 0
  #line = 1

  constructor(readonly text: string) {
    this.#next()
  }

  /**
   * Reads the value that begins with the current token, and goes on to the token after it. Its line is noted in `around`, the
   * position of the object or array that it is in.
   */
  value(path: PolicyPath, around: Position): unknown {
    const position: Position = { line: this.#line }
    around.inner ??= new Map()
    around.inner.set(path.at(-1), position)
    if (path.length > DEEPEST) this.fail(`at most ${DEEPEST} levels`)
    if (this.token === '{') return this.#members(path, position)
    if (this.token === '[') return this.#entries(path, position)
    return this.#scalar('a value')
  }

  /**
   * Reads an object at a path up to its closing brace. If it has a name twice, the path of the name is noted, and the last value
   * counts. The object has no prototype, so that a member `__proto__` is one like any other.
   */
  #members(path: PolicyPath, position: Position): object {
    const object: Record<string, unknown> = Object.create(null)
    this.#list('}', () => {
      if (!this.token.startsWith('"')) this.fail('a name in double quotes')
      const name = String(this.#scalar('a name'))
      if (Object.hasOwn(object, name)) this.repeated.push([...path, name])
      if (this.token !== ':') this.fail("':'")
      this.#next()
      object[name] = this.value([...path, name], position)
    })
    return object
  }

  /** Reads the entries of an array up to its closing bracket. The path of an entry is the path of the array and the entry's index. */
  #entries(path: PolicyPath, position: Position): unknown[] {
    const array: unknown[] = []
    this.#list(']', () => void array.push(this.value([...path, array.length], position)))
    return array
  }

  /**
   * Reads a list of items with commas between, each by `readItem`, up to the mark `end` that closes it, and goes on to
   * the token after that. The token before the first item is the opening bracket or brace.
   */
  #list(end: string, readItem: () => void): void {
    this.#next()
    if (this.token !== end) readItem()
    while (this.token === ',') {
      this.#next()
      readItem()
    }
    if (this.token !== end) this.fail(`',' or '${end}'`)
    this.#next()
  }

  /**
   * Reads the current token as a text, a number, true, false or null, and goes on to the token after it. If it is none of these,
   * the error says that `expected` was expected there.
   */
  #scalar(expected: string): unknown {
    try {
      const value: unknown = JSON.parse(this.token)
      this.#next()
      return value
    } catch {
      return this.fail(expected)
    }
  }

  /** Goes on to the next token: a text, a mark, or a word; '' at the end. Counts the line ends in the white space before it. */
  #next(): void {
    TOKEN.lastIndex = this.#at
    const [all, space, token] = TOKEN.exec(this.text) as unknown as [string, string, string]
    this.#at += all.length
    this.#line += space.split('\n').length - 1
    this.token = token
  }

  /** Ends the reading with an error: `expected` was expected in place of the present token. Each text that is not JSON ends here. */
  fail(expected: string): never {
    const found = this.token === '' ? 'the end of the file' : `'${this.token.slice(0, 20)}'`
    throw Object.assign(new JsonError(`expected ${expected}, got ${found}`), { line: this.#line })
  }
}

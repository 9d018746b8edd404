/*
 * JSON with the line of every value, which messages about a policy file name. JSON.parse keeps no positions.
 */

/** A JSON text as a value. */
export interface Located {
  readonly value: unknown
  /** The line of the value at a path such as `limiters.api.policies[0]`, or of the nearest value around it. */
  readonly lineOf: (path: string) => number
  /** The paths of names that stand twice in one object. */
  readonly repeated: readonly string[]
}

/** Thrown for a text that is not JSON, with the line of the fault, from 1. */
export class JsonError extends Error {
  line = 1
}

/**
 * Reads a JSON text as a value, and notes for messages about it on which line each value stands, and which names an
 * object has twice. `lineOf` takes a path; for one that the text does not have, it returns the line of the nearest value
 * around it.
 * @throws {JsonError} for a text that is not JSON, or that nests deeper than 32 levels.
 */
export function parseLocated(text: string): Located {
  const parser = new Parser(text.replace(/^\ufeff/, ''))
  const value = parser.value('', 0)
  if (parser.token !== '') parser.fail('the end of the file')
  const lineOf = (path: string): number =>
    parser.lines.get(path) ?? (path === '' ? 1 : lineOf(path.replace(/(?:^|\.)[^.[\]]*$|\[\d+\]$/, '')))
  return { value, lineOf, repeated: parser.repeated }
}

/** The path of the member `name` of the object at `path`, such as `limiters.api`. */
export const member = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)

/** White space, then a text, a mark, or a word such as a number. */
const TOKEN = /(\s*)("(?:[^"\\\n]|\\.)*"|[{}[\],:]|[^\s{}[\],:]*)/y
const DEEPEST = 32

class Parser {
  readonly lines = new Map<string, number>()
  readonly repeated: string[] = []
  /** The token at hand; '' at the end. */
  token = ''
  #at = 0
  #line = 1

  constructor(readonly text: string) {
    this.#next()
  }

  /**
   * Reads the value that begins with the current token, and goes on to the token after it. Its line is noted under
   * `path`; `depth` is how many objects and lists are around it.
   */
  value(path: string, depth: number): unknown {
    this.lines.set(path, this.#line)
    if (depth > DEEPEST) this.fail(`at most ${DEEPEST} levels`)
    if (this.token === '{') return this.#members(path, depth)
    if (this.token === '[') return this.#entries(path, depth)
    return this.#scalar('a value')
  }

  /**
   * Reads an object up to its closing brace. `path` is where it stands; the path of each name that it has twice is noted,
   * and the last value counts. The object has no prototype, so that a member `__proto__` is one like any other.
   */
  #members(path: string, depth: number): object {
    const object: Record<string, unknown> = Object.create(null)
    this.#list('}', () => {
      if (!this.token.startsWith('"')) this.fail('a name in double quotes')
      const name = String(this.#scalar('a name'))
      const inner = member(path, name)
      if (Object.hasOwn(object, name)) this.repeated.push(inner)
      if (this.token !== ':') this.fail("':'")
      this.#next()
      object[name] = this.value(inner, depth + 1)
    })
    return object
  }

  /**
   * Reads the entries of an array up to its closing bracket. Each entry's path, such as `policies[0]`, is that of the
   * array and the entry's index.
   */
  #entries(path: string, depth: number): unknown[] {
    const array: unknown[] = []
    this.#list(']', () => void array.push(this.value(`${path}[${array.length}]`, depth + 1)))
    return array
  }

  /**
   * Reads a list of items with commas between, each by `readItem`, up to the mark `end` that closes it, and goes on to
   * the token after that. The token before the first item is the opening bracket or brace.
   */
  #list(end: string, readItem: () => void): void {
    this.#next()
    for (let isFirst = true; isFirst ? this.token !== end : this.token === ','; isFirst = false) {
      if (!isFirst) this.#next()
      readItem()
    }
    if (this.token !== end) this.fail(`',' or '${end}'`)
    this.#next()
  }

  /**
   * Reads the current token as a text, a number, true, false or null, and goes on to the token after it. If it is none of
   * these, `what` is what the error says was expected there.
   */
  #scalar(what: string): unknown {
    try {
      const value: unknown = JSON.parse(this.token)
      this.#next()
      return value
    } catch {
      return this.fail(what)
    }
  }

  /**
   * Goes on to the next token (a text, a mark, or a word), which is '' at the end of the file. The line ends in the white
   * space before it are counted.
   */
  #next(): void {
    TOKEN.lastIndex = this.#at
    const [all, space, token] = TOKEN.exec(this.text) as unknown as [string, string, string]
    this.#at += all.length
    this.#line += space.split('\n').length - 1
    this.token = token
  }

  /** Ends the reading with an error: every text that is not JSON ends here. */
  fail(expected: string): never {
    const found = this.token === '' ? 'the end of the file' : `'${this.token.slice(0, 20)}'`
    throw Object.assign(new JsonError(`expected ${expected}, got ${found}`), { line: this.#line })
  }
}

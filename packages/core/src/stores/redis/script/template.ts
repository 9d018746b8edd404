/*
 * The words that texts of lua/ may contain beside Lua, as lua/README.md describes it: `@{word}`, the directive `--@for`, and
 * constants in capitals. An unknown one is an error when a script is composed, so it never reaches Redis. And max, min, floor and
 * ceil as Lua operators, because a call of a C function takes longer than the rest of its line.
 */

/** The named replacements for `@{word}`. */
export type Words = Readonly<Record<string, string>>

/** The lists of `--@for each`, by name: a line is repeated with the words of each member. */
export type Lists = Readonly<Record<string, readonly Words[]>>

/**
 * Repeats the line of each `--@for each <list> <line>` for every member of the list, with the member's words filled in, and keeps
 * that of `--@for any <list> <line>` once where the list has a member. `lists` has the words of each member by the name of the
 * list. Words that no member has stay for `fill`.
 * @throws {Error} for another directive or an unknown list.
 */
export function expand(text: string, lists: Lists): string {
  return text.replace(/^( *)(--\s*@.*)$/gm, (_, indent: string, directive: string) => {
    const [, quantifier, name, line] = /^--@for (each|any) (\w+) (.+)$/.exec(directive) ?? []
    if (quantifier === undefined) throw new Error(`lua/ uses the unknown directive '${directive}'`)
    const members = known(lists, name!, 'list')
    if (quantifier === 'any') return members.length > 0 ? indent + line! : ''
    return members.map((words) => indent + fillOwn(line!, words)).join('\n')
  })
}

/**
 * Returns the text with each word in braces, `@{word}`, replaced by what `words` has for it.
 * @throws {Error} for a word that is not in `words`.
 */
export function fill(text: string, words: Words): string {
  return text.replace(WORD, (_, word: string) => known(words, word, 'word'))
}

/** Returns the line with each `@{word}` replaced that `words` has; other words stay, to be filled in later for the whole text. */
function fillOwn(line: string, words: Words): string {
  return line.replace(WORD, (written, word: string) => (Object.hasOwn(words, word) ? words[word]! : written))
}

/**
 * Returns the script with a literal in place of each constant, a name in capitals, as literals cost a call nothing. Strings and
 * comments are matched first, so that capitals in them stay.
 * @throws {Error} for a name in capitals that is neither in `constants` nor a global of Redis.
 */
export function withConstants(script: string, constants: Words): string {
  return script.replace(/--.*$|'(?:[^'\\\n]|\\.)*'|\b[A-Z][A-Z_]*\b/gm, (token) =>
    /^[A-Z]/.test(token) && !REDIS_GLOBALS.has(token) ? known(constants, token, 'constant') : token,
  )
}

/**
 * Returns the value of a name that a text of lua/ uses. `what` is the kind of the name, for the error.
 * @throws {Error} for a name that `values` does not have.
 */
export function known<T>(values: Readonly<Record<string, T>>, name: string, what: string): T {
  if (!Object.hasOwn(values, name)) throw new Error(`lua/ uses the unknown ${what} '${name}'`)
  return values[name]!
}

/** Any text between the braces: a word with a slip in it must not stay in the script. */
const WORD = /@\{([^}]*)\}/g

const REDIS_GLOBALS: ReadonlySet<string> = new Set(['KEYS', 'ARGV'])

/** Every number is true in Lua, so and-or selects one. Instants and counts are exact, so `% 1` rounds like floor. */
const OPERATORS: Readonly<Record<string, (a: string, b: string) => string>> = {
  max: (a, b) => `(${a} > ${b} and ${a} or ${b})`,
  min: (a, b) => `(${a} < ${b} and ${a} or ${b})`,
  floor: (a) => (/^\(\w+ ?\/ ?1\)$/.test(a) ? a : `(${a} - ${a} % 1)`), // ticks of a microsecond are whole
  ceil: (a) => `(${a} + -${a} % 1)`,
}

/**
 * Returns the script with calls of max, min, floor and ceil written as operators, for example `(a > b and a or b)`, which are
 * faster in Lua. An operator repeats its argument, so a call stays, as one of `math`, where an argument itself contains a call,
 * which would then run twice. Arguments are rewritten in the same way first.
 */
export function withOperators(script: string): string {
  let text = ''
  let end = 0
  for (const { 0: call, 1: name, index } of script.matchAll(/\b(max|min|floor|ceil)\(/g)) {
    if (index < end) continue // within the arguments of the one before
    const [given, after] = argumentsAt(script, index + call.length)
    const args = given.map(withOperators)
    const inPlace = args.some((arg) => /\w\(/.test(arg))
      ? `math.${name}(${args.join(',')})`
      : OPERATORS[name!]!(operand(args[0]!), operand(args[1] ?? ''))
    text += script.slice(end, index) + inPlace
    end = after
  }
  return text + script.slice(end)
}

/**
 * Returns the arguments of a call in Lua, as texts, whose first one begins at `start`, and the place behind the call's closing
 * bracket. Commas inside of inner brackets part nothing.
 */
function argumentsAt(text: string, start: number): [args: string[], end: number] {
  const args: string[] = []
  for (let i = start, from = start, depth = 0; ; i++) {
    const char = text[i]!
    if (char === '(') depth++
    else if (char === ')' && depth-- === 0) return [[...args, text.slice(from, i)], i + 1]
    else if (char === ',' && depth === 0) {
      args.push(text.slice(from, i))
      from = i + 1
    }
  }
}

/**
 * Returns an argument in brackets, so that an operator can stand beside it; as it is if it is one name or has brackets already.
 */
function operand(text: string): string {
  const arg = text.trim()
  return /^(\w+|\([^()]*\))$/.test(arg) ? arg : `(${arg})`
}

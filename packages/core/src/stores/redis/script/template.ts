/*
 * The words that texts of lua/ may contain beside Lua, as lua/README.md describes it: `@{word}`, the directive `--@for`, and
 * constants in capitals. An unknown one is an error when a script is composed, so it never reaches Redis.
 */

/** The named replacements for `@{word}`. */
export type Words = Readonly<Record<string, string>>

/** The lists of `--@for each`, by name: a line is repeated with the words of each member. */
export type Lists = Readonly<Record<string, readonly Words[]>>

/**
 * Repeats the line of each `--@for each <list> <line>` for every member of the list, with the member's words filled in, and
 * keeps that of `--@for any <list> <line>` where the list has a member. Other words stay for `fill`.
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

/** @throws {Error} for a word that is not in `words`. */
export function fill(text: string, words: Words): string {
  return text.replace(WORD, (_, word: string) => known(words, word, 'word'))
}

function fillOwn(line: string, words: Words): string {
  return line.replace(WORD, (written, word: string) => (Object.hasOwn(words, word) ? words[word]! : written))
}

/**
 * Puts literals in place of the constants, which cost a call nothing, as locals would. Strings and comments stay as they are.
 * @throws {Error} for a name in capitals that is neither in `constants` nor a global of Redis.
 */
export function withConstants(script: string, constants: Words): string {
  return script.replace(/--.*$|'(?:[^'\\\n]|\\.)*'|\b[A-Z][A-Z_]*\b/gm, (token) =>
    /^[A-Z]/.test(token) && !REDIS_GLOBALS.has(token) ? known(constants, token, 'constant') : token,
  )
}

/** The value of a name that a text of lua/ uses. `what` says in the error what the name stands for. */
export function known<T>(values: Readonly<Record<string, T>>, name: string, what: string): T {
  if (!Object.hasOwn(values, name)) throw new Error(`lua/ uses the unknown ${what} '${name}'`)
  return values[name]!
}

/** Any text between the braces: a word with a slip in it must not stay in the script. */
const WORD = /@\{([^}]*)\}/g

const REDIS_GLOBALS: ReadonlySet<string> = new Set(['KEYS', 'ARGV'])

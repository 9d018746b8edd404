/*
 * Puts the bodies of Lua functions where they are called. A function is made anew in every call of a script, which
 * takes longer than what it does; a call of it costs as much as a dozen of its lines.
 */
import { argumentsAt } from './operators.js'

interface LuaFunction {
  readonly params: readonly string[]
  readonly lines: readonly string[]
}

/**
 * The script with calls that are a line of their own replaced: `return f(...)`, `a, b = f(...)`, `local a = f(...)` and
 * `f(...)`. What is called in other places stays a function; one that returns out of a loop does, but for `return f(...)`.
 */
export function withInlined(modules: string, script: string): string {
  const functions = new Map<string, LuaFunction>()
  const count = { blocks: 0 }
  const kept = modules.replace(
    /^local function (\w+)\(([^)]*)\)\n([^]*?)^end$|^local ([\w, ]+) = ([\w, ]+)$/gm,
    (text, name: string, params: string, body: string, aliases: string, originals: string) => {
      if (aliases) {
        if (!split(originals).every((original) => functions.has(original))) return text
        for (const [i, alias] of split(aliases).entries())
          functions.set(alias, functions.get(split(originals)[i]!)!)
        return ''
      }
      const lines = inlined(body.trimEnd().split('\n'), functions, count)
      functions.set(name, { params: split(params), lines })
      return [`local function ${name}(${params})`, ...lines, 'end'].join('\n')
    },
  )
  return withoutUnused(kept, inlined(script.split('\n'), functions, count).join('\n'))
}

function inlined(
  lines: readonly string[],
  functions: ReadonlyMap<string, LuaFunction>,
  count: { blocks: number },
): string[] {
  return lines.flatMap((line) => {
    const [, indent = '', before = '', name = ''] =
      /^(\s*)(return |(?:local )?[\w, ]+ = |)(\w+)\(/.exec(line) ?? []
    const callee = functions.get(name)
    if (!callee) return [line]
    const [args, end] = argumentsAt(line, indent.length + before.length + name.length + 1)
    if (end !== line.length) return [line]
    const [settings, body] = bodyFor(callee, args, `${++count.blocks}`)
    if (before === 'return ') return indented(indent, ['do', ...settings, ...body, 'end'])
    if (returnsFromLoop(body)) return [line]
    const [, local, targets] = /^(local )?(.*?)(?: = )?$/.exec(before)!
    const found = body.flatMap((text) =>
      text.replace(/^(\s*)return ?(.*)$/, (_, inner: string, values: string) =>
        targets ? `${inner}${targets} = ${values} break` : `${inner}break`,
      ),
    )
    return indented(indent, [
      ...(local ? [`local ${targets}`] : []),
      'repeat',
      ...settings,
      ...found,
      'until true',
    ])
  })
}

/** Its lines with names of their own, and arguments that are names or numbers in place of what is never set. */
function bodyFor(
  { params, lines }: LuaFunction,
  args: readonly string[],
  block: string,
): [string[], string[]] {
  const text = lines.join('\n')
  const own = new Map<string, string>()
  for (const [, names] of text.matchAll(/\b(?:local|for) ([\w, ]+?)(?: =| in|$)/gm)) {
    for (const name of split(names!)) own.set(name, `${name}_b${block}`)
  }
  const settings: string[] = []
  for (const [i, param] of params.entries()) {
    const arg = args[i]?.trim() ?? 'nil'
    const isSet =
      own.has(param) ||
      new RegExp(`^\\s*(\\w+, )*${param}(, \\w+)* = |(then|else) (\\w+, )*${param}(, \\w+)* = `, 'm').test(
        text,
      )
    if (!isSet && /^(\w+|\d[\d.e]*)$/.test(arg)) own.set(param, arg)
    else {
      own.set(param, `${param}_b${block}`)
      if (new RegExp(`\\b${param}\\b`).test(text)) settings.push(`local ${param}_b${block} = ${arg}`)
    }
  }
  return [settings, text.replace(/(?<![\w.'])[a-z_]\w*/g, (name) => own.get(name) ?? name).split('\n')]
}

function returnsFromLoop(lines: readonly string[]): boolean {
  let loop: string | undefined
  for (const line of lines) {
    const indent = /^\s*/.exec(line)![0]
    if (loop === undefined && /^\s*(for|while)\b.*\bdo$/.test(line)) loop = indent
    else if (loop === indent) loop = undefined
    if (loop !== undefined && /^\s*return\b/.test(line)) return true
  }
  return false
}

/** Functions that nothing calls are left out. */
function withoutUnused(modules: string, rest: string): string {
  const pieces = modules.split(/^(?=local function )/m)
  return pieces.reduceRight((script, piece) => {
    const name = /^local function (\w+)/.exec(piece)?.[1]
    if (!name || new RegExp(`\\b${name}\\b`).test(script)) return piece + script
    return piece.replace(/^local function [^]*?^end$\n?/m, '') + script
  }, rest)
}

function indented(indent: string, lines: readonly string[]): string[] {
  return lines.map((line) => indent + line)
}

function split(names: string): string[] {
  return names
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

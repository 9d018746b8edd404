/*
 * max, min, floor and ceil as Lua operators, because a call of a C function takes longer than the rest of its line.
 */

/** Every number is true in Lua, so and-or selects one. Instants and counts are exact, so `% 1` rounds like floor. */
const OPERATORS: Readonly<Record<string, (a: string, b: string) => string>> = {
  max: (a, b) => `(${a} > ${b} and ${a} or ${b})`,
  min: (a, b) => `(${a} < ${b} and ${a} or ${b})`,
  floor: (a) => (/^\(\w+ \/ 1\)$/.test(a) ? a : `(${a} - ${a} % 1)`), // ticks of a microsecond are whole
  ceil: (a) => `(${a} + -${a} % 1)`,
}

/**
 * Writes calls of max, min, floor and ceil as operators, which are faster, unless an argument contains a call, which
 * would then run twice.
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

/** The arguments of a call that begin at `start`, and the place behind its closing bracket. */
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

/** An argument in brackets, unless it is a name or has them. */
function operand(text: string): string {
  const arg = text.trim()
  return /^(\w+|\([^()]*\))$/.test(arg) ? arg : `(${arg})`
}

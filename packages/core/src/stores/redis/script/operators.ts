/*
 * max, min, floor and ceil in Lua, as operators: a call of a C function takes a script longer than the rest of the line.
 */

/** Numbers are true in Lua, so that and-or picks one. Instants and counts are exact, so `% 1` cuts as floor does. */
const OPERATORS: Readonly<Record<string, (a: string, b: string) => string>> = {
  max: (a, b) => `(${a} > ${b} and ${a} or ${b})`,
  min: (a, b) => `(${a} < ${b} and ${a} or ${b})`,
  floor: (a) => `(${a} - ${a} % 1)`,
  ceil: (a) => `(${a} + -${a} % 1)`,
}

/** The script with operators in place of those calls, but where an argument itself calls something and would do it twice. */
export function withOperators(script: string): string {
  const calls = [...script.matchAll(/\b(max|min|floor|ceil)\(/g)].map(({ index }) => index)
  // From the last on, as a call within a call comes after its name.
  return calls.reduceRight((text, start) => {
    const open = text.indexOf('(', start)
    const [args, end] = argumentsAt(text, open + 1)
    const name = text.slice(start, open)
    const inPlace = args.some((arg) => /\w\(/.test(arg))
      ? `math.${text.slice(start, end)}`
      : OPERATORS[name]!(operand(args[0]!), operand(args[1] ?? ''))
    return text.slice(0, start) + inPlace + text.slice(end)
  }, script)
}

/** The arguments that begin at `start`, and where the call ends. */
function argumentsAt(text: string, start: number): [args: string[], end: number] {
  const args = ['']
  for (let i = start, depth = 0; ; i++) {
    const char = text[i]!
    if (char === ')' && depth-- === 0) return [args, i + 1]
    if (char === '(') depth++
    if (char === ',' && depth === 0) args.push('')
    else args.push(args.pop()! + char)
  }
}

function operand(text: string): string {
  const arg = text.trim()
  return /^(\w+|\([^()]*\))$/.test(arg) ? arg : `(${arg})`
}

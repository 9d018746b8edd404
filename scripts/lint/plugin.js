// Rules of lint that are this repository's own.
import { basename } from 'node:path'

/** @typedef {Parameters<import('oxlint/plugins-dev').RuleTester['run']>[1]} Rule */

/** Types by name: the file that declares each. @type {Map<string, string>} */
const declaredIn = new Map()

/** One public name for the same thing in each adapter. */
const SHARED = new Set(['RateLimitOptions'])

/** Words of other libraries, and ours. @type {Readonly<Record<string, string>>} */
const REPLACED = {
  Throttler: 'limiter',
  Rule: 'policy',
  Weight: 'cost',
  Identifier: 'key',
  Tracker: 'key',
  Place: 'booking or permit',
  Driver: 'store',
  Plugin: 'adapter',
}
const REPLACED_WORD = new RegExp(`(${Object.keys(REPLACED).join('|')})s?(?![a-z])`)

/** No name of a type stands for two things, over all files that are linted together, and none is a word that the glossary replaces. @type {Rule} */
const typeNames = {
  create(context) {
    /** @param {any} declaration */
    const check = ({ id: node }) => {
      if (!node) return
      const { name } = node
      const [, word] = REPLACED_WORD.exec(name) ?? []
      if (word)
        context.report({ node, message: `${name} is named by '${word}': the glossary has ${REPLACED[word]}` })
      const other = declaredIn.get(name) ?? context.filename
      if (SHARED.has(name) || other === context.filename) declaredIn.set(name, other)
      else context.report({ node, message: `${name} is declared in ${basename(other)} too` })
    }
    return { ClassDeclaration: check, TSInterfaceDeclaration: check, TSTypeAliasDeclaration: check }
  },
}

/** @type {[RegExp, string][]} */
const UNIX = [
  [
    /^\/(?:tmp|var|usr|etc|home|dev|proc)\b/,
    'a folder of Unix: os.tmpdir() and node:path know the right one',
  ],
  [/^SIG(?:STOP|CONT|TSTP|HUP|QUIT|USR[12]|PIPE|ALRM|CHLD|WINCH)$/, 'a signal that Windows lacks'],
]
/** @type {Readonly<Record<string, string>>} */
const PROGRAMS = {
  npm: 'a batch file on Windows: scripts/npm.js',
  npx: 'a batch file on Windows: scripts/npm.js',
  sh: 'a shell of Unix',
  bash: 'a shell of Unix',
}

/** Nothing keeps the repository from being built and tested on Windows. @type {Rule} */
const portable = {
  create(context) {
    /** @param {any} node @param {unknown} text */
    const check = (node, text) => {
      for (const [pattern, message] of UNIX)
        if (typeof text === 'string' && pattern.test(text)) context.report({ node, message })
    }
    return {
      Literal: (node) => check(node, node.value),
      TemplateLiteral: (node) => check(node, node.quasis[0]?.value.raw),
      CallExpression(node) {
        const {
          callee,
          arguments: [program],
        } = node
        if (callee.type !== 'Identifier' || !/^(?:spawn|execFile)(?:Sync)?$/.test(callee.name)) return
        const message = program?.type === 'Literal' && PROGRAMS[String(program.value)]
        if (message) context.report({ node, message })
      },
      MemberExpression(node) {
        if (/\bimport\.meta\.url\)\.pathname$/.test(context.sourceCode.getText(node)))
          context.report({
            node,
            message: 'begins with a slash on Windows: fileURLToPath, import.meta.dirname',
          })
      },
    }
  },
}

export default /** @type {object} */ ({
  meta: { name: 'sluice' },
  rules: { 'type-names': typeNames, portable },
})

// Rules of lint that are this repository's own.
import { basename } from 'node:path'

/** @typedef {Parameters<import('oxlint/plugins-dev').RuleTester['run']>[1]} Rule */

/** Types by name: the file that declares each. @type {Map<string, string>} */
const declaredIn = new Map()

/**
 * No name of a type stands for two things, over all files that are linted together, and none is a word that the glossary
 * replaces. The option has the words, and the names that stand for the same thing wherever they are declared.
 * @type {Rule}
 */
const typeNames = {
  meta: { schema: false },
  create(context) {
    /** @type {any} */
    const [{ replaced, shared }] = context.options
    const word = new RegExp(`(${Object.keys(replaced).join('|')})s?(?![a-z])`)
    /** @param {any} declaration */
    const check = ({ id: node }) => {
      if (!node) return
      const { name } = node
      const [, old = ''] = word.exec(name) ?? []
      if (old)
        context.report({ node, message: `${name} is named by '${old}': the glossary has ${replaced[old]}` })
      const other = declaredIn.get(name) ?? context.filename
      if (other === context.filename || shared.includes(name)) declaredIn.set(name, other)
      else context.report({ node, message: `${name} is declared in ${basename(other)} too` })
    }
    return { ClassDeclaration: check, TSInterfaceDeclaration: check, TSTypeAliasDeclaration: check }
  },
}

/** Texts, and programs that are started, that Windows lacks. @type {readonly (readonly [RegExp, string])[]} */
const TEXTS = [
  [
    /^\/(?:tmp|var|usr|etc|home|dev|proc)\b/,
    'a folder of Unix: os.tmpdir() and node:path know the right one',
  ],
  [/^SIG(?:STOP|CONT|TSTP|HUP|QUIT|USR[12]|PIPE|ALRM|CHLD|WINCH)$/, 'a signal that Windows lacks'],
]
/** @type {readonly (readonly [RegExp, string])[]} */
const CODE = [
  [/^(?:spawn|execFile)(?:Sync)?\(\s*['"]np[mx]['"]/, 'a batch file on Windows: scripts/npm.js'],
  [/^(?:spawn|execFile)(?:Sync)?\(\s*['"](?:ba)?sh['"]/, 'a shell of Unix'],
  [/\bimport\.meta\.url\)\.pathname$/, 'begins with a slash on Windows: fileURLToPath, import.meta.dirname'],
]

/** Nothing keeps the repository from being built and tested on Windows. @type {Rule} */
const portable = {
  create(context) {
    /** @param {any} node @param {unknown} text @param {typeof TEXTS} among */
    const check = (node, text, among) => {
      for (const [pattern, message] of among)
        if (typeof text === 'string' && pattern.test(text)) context.report({ node, message })
    }
    /** @param {any} node */
    const checkCode = (node) => check(node, context.sourceCode.getText(node), CODE)
    return {
      Literal: (node) => check(node, node.value, TEXTS),
      TemplateLiteral: (node) => check(node, node.quasis[0]?.value.raw, TEXTS),
      CallExpression: checkCode,
      MemberExpression: checkCode,
    }
  },
}

/** Types of what `void` must not hide. */
const PROMISES = new Set(['Promise'])

/**
 * `void` before a promise, as in `setTimer(() => void this.#run())`, gives it no owner, and hides it from
 * typescript/no-floating-promises, which reads statements alone. Without types, what returns a promise is what the same file declares to.
 * @type {Rule}
 */
const ownedPromises = {
  create(context) {
    const promising = new Set(['then', 'finally'])
    /** @type {any[]} */
    const hidden = []
    /** @param {any} key @param {any} value */
    const declare = (key, value) => {
      const type = (value?.returnType ?? value?.typeAnnotation)?.typeAnnotation
      const returned = type?.type === 'TSFunctionType' ? type.returnType?.typeAnnotation : type
      if (value?.async || PROMISES.has(returned?.typeName?.name)) promising.add(key?.name)
    }
    return {
      FunctionDeclaration: (node) => declare(node.id, node),
      MethodDefinition: (node) => declare(node.key, node.value),
      PropertyDefinition: (node) => declare(node.key, node),
      TSMethodSignature: (node) => declare(node.key, node),
      TSPropertySignature: (node) => declare(node.key, node),
      TSParameterProperty: ({ parameter }) => declare(parameter, parameter),
      VariableDeclarator: (node) => declare(node.id, node.init),
      UnaryExpression(node) {
        if (node.operator === 'void' && node.argument.type === 'CallExpression') hidden.push(node)
      },
      'Program:exit'() {
        for (const node of hidden) {
          const { callee, arguments: given } = node.argument
          const { name } = callee.property ?? callee
          const isHandled = name === 'then' && given.length > 1
          if (promising.has(name) && !isHandled)
            context.report({
              node,
              message: `${name} returns a promise, which needs an owner: a catch that says why`,
            })
        }
      },
    }
  },
}

/** What one class of promise or of async function is written as: the global one, and an alias such as NativePromise. */
const CLASS = /(?:^|\.)(?:\w*Promise(?:\.prototype)?|AsyncFunction)$/
const CLASS_TEXT = /^(?:\[object )?(?:Async(?:Generator)?Function|Promise)\]?$/
/** Calls that know one class alone. */
const CLASS_CALL =
  /\btypes\.is(?:Promise|AsyncFunction)$|Promise(?:\.prototype\.isPrototypeOf|\[Symbol\.hasInstance\])$/
const THEN = /(?:\.then|\[['"]then['"]\])$/
const ONE_TEST = 'a promise is what has a callable `then`: isPromise of core, or a mark of what was made here'

/**
 * No promise is told by its class: a program may replace the global Promise, and async functions go on to return native ones. Nor
 * by a `then` of which nobody asks whether it can be called.
 * @type {Rule}
 */
const promises = {
  create(context) {
    /** @param {any} node */
    const report = (node) => context.report({ node, message: ONE_TEST })
    /** @param {any} node */
    const text = (node) => context.sourceCode.getText(node)
    /** @param {any} node */
    const isThen = (node) => THEN.test(text(node))
    /** @param {any} node */
    const checkTest = ({ test }) => isThen(test) && report(test)
    return {
      BinaryExpression(/** @type {any} */ node) {
        const { operator, left, right } = node
        if (operator === 'in') return left.value === 'then' && report(node)
        if (operator === 'instanceof') return CLASS.test(text(right)) && report(node)
        if (!/^[!=]==?$/.test(operator)) return undefined
        const isClass = [left, right].some((side) => CLASS.test(text(side)) || CLASS_TEXT.test(side.value))
        return isClass && report(node)
      },
      SwitchCase: ({ test }) => CLASS_TEXT.test(/** @type {any} */ (test)?.value) && report(test),
      CallExpression: ({ callee }) => CLASS_CALL.test(text(callee)) && report(callee),
      ImportDeclaration(/** @type {any} */ { source, specifiers }) {
        if (!/^(?:node:)?util\/types$/.test(source.value)) return
        for (const one of specifiers)
          if (/^is(?:Promise|AsyncFunction)$/.test(one.imported?.name)) report(one)
      },
      UnaryExpression: (node) =>
        ['typeof', '!'].includes(node.operator) && isThen(node.argument) && report(node),
      LogicalExpression: ({ left }) => isThen(left) && report(left),
      IfStatement: checkTest,
      ConditionalExpression: checkTest,
    }
  },
}

export default /** @type {object} */ ({
  meta: { name: 'sluice' },
  rules: { 'type-names': typeNames, 'owned-promises': ownedPromises, portable, promises },
})

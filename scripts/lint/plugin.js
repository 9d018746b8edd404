// Rules of lint that are this repository's own.
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'

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

/** The names of the files of algorithms. */
const ALGORITHMS = readdirSync(join(import.meta.dirname, '../../packages/core/src/algorithms'), {
  withFileTypes: true,
})
  .filter((file) => file.isFile() && file.name !== 'index.ts')
  .map(({ name }) => basename(name, '.ts'))
const FACTORIES = ALGORITHMS.map((name) => name.replaceAll(/-./g, ([, letter = '']) => letter.toUpperCase()))

/** The name of a factory, or of an algorithm, which may have that of a variant behind it. */
const NAME = new RegExp(`^(?:${FACTORIES.join('|')}|(?:${ALGORITHMS.join('|')})(?:[-, ].*)?)$`)
/** The same in a regular expression. */
const PATTERN = new RegExp(`\\b(?:${[...FACTORIES, ...ALGORITHMS].join('|')})\\b`)
/** How many factories a file may name: with more of them it is taken for a list, in which the next one would be missing. */
const MOST_FACTORIES = 2
const MENTIONS = new RegExp(`\\b(?:${FACTORIES.join('|')})\\b`, 'g')
const ASKED = 'an algorithm says all about itself (`bounds`, `ring`, the options of its factory): ask it'

/**
 * No source decides by the name of an algorithm, and none lists the factories by hand: a further algorithm would be missing
 * there, or get what is right for another.
 * @type {Rule}
 */
const algorithmNames = {
  create(context) {
    const isName = (/** @type {any} */ node) => node?.type === 'Literal' && NAME.test(node.value)
    const compared = (/** @type {any} */ node) => {
      context.report({ node, message: `the name of an algorithm is compared: ${ASKED}` })
    }
    const { sourceCode } = context
    return {
      Program(node) {
        const code = sourceCode.text.split('')
        for (const { range } of sourceCode.getAllComments()) code.fill(' ', ...range)
        const found = new Set(code.join('').match(MENTIONS))
        if (found.size <= MOST_FACTORIES) return
        context.report({
          node,
          message: `${found.size} algorithms are listed by hand: read a registry, or the kit's shapes`,
        })
      },
      BinaryExpression(node) {
        if (/^[!=]==?$/.test(node.operator) && [node.left, node.right].some(isName)) compared(node)
      },
      SwitchCase(node) {
        if (isName(node.test)) compared(node)
      },
      CallExpression(node) {
        /** @type {any} */
        const { callee, arguments: given } = node
        const names = callee.object?.type === 'ArrayExpression' ? callee.object.elements : given
        const method = callee.property?.name
        if (/^(?:startsWith|endsWith|includes|has|indexOf)$/.test(method) && names.some(isName))
          compared(node)
      },
      NewExpression(node) {
        /** @type {any} */
        const { callee, arguments: given } = node
        if (!/^(?:Set|Map)$/.test(callee.name)) return
        const elements = (given[0]?.elements ?? []).map(
          (/** @type {any} */ each) => each?.elements?.[0] ?? each,
        )
        if (elements.some(isName)) compared(node)
      },
      Literal(node) {
        if ('regex' in node && PATTERN.test(node.regex.pattern)) compared(node)
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

/** An expression without what types add to it. @param {any} node @returns {any} */
const bare = (node) =>
  /^(?:TS(?:NonNull|As|Satisfies)|Chain|Parenthesized)Expression$/.test(node?.type)
    ? bare(node.expression)
    : node

/**
 * No statement writes a field of an object that has another class: each field has one owner, which a reader finds by `this`. Free
 * are private names, which the class of the object alone can write, static fields by the name of the class around, records that
 * the same file makes as literals, and elements of lists and maps.
 * @type {Rule}
 */
const ownFields = {
  create(context) {
    /** @type {string[]} */
    const classes = []
    /** @param {any} node */
    const isLiteral = (node) => {
      for (let scope = context.sourceCode.getScope(node); scope; scope = /** @type {any} */ (scope.upper)) {
        const [definition] = scope.set.get(node.name)?.defs ?? []
        const init = bare(/** @type {any} */ (definition?.node)?.init)
        if (definition) return definition.type === 'Variable' && init?.type === 'ObjectExpression'
      }
      return false
    }
    /** @param {any} target */
    const check = (target) => {
      const node = bare(target)
      const parts = node?.elements ?? node?.properties ?? []
      for (const part of [...parts, node?.left, node?.argument, node?.value])
        if (typeof part?.type === 'string') check(part)
      if (node?.type !== 'MemberExpression' || node.property.type === 'PrivateIdentifier') return
      if (node.computed && node.property.type !== 'Literal') return
      if (node.computed && typeof node.property.value !== 'string') return
      const owner = bare(node.object)
      if (owner.type === 'ThisExpression') return
      if (owner.type === 'Identifier' && (classes.includes(owner.name) || isLiteral(owner))) return
      const written = context.sourceCode.getText(node)
      context.report({ node, message: `${written} is written from outside: its class has to do that` })
    }
    /** @param {any} node */
    const enter = (node) => void classes.push(node.id?.name ?? '')
    const leave = () => void classes.pop()
    return {
      ClassDeclaration: enter,
      ClassExpression: enter,
      'ClassDeclaration:exit': leave,
      'ClassExpression:exit': leave,
      AssignmentExpression: ({ left }) => check(left),
      UpdateExpression: ({ argument }) => check(argument),
      UnaryExpression: ({ operator, argument }) => operator === 'delete' && check(argument),
      ForOfStatement: ({ left }) => check(left),
      ForInStatement: ({ left }) => check(left),
    }
  },
}

export default /** @type {object} */ ({
  meta: { name: 'sluice' },
  rules: {
    'algorithm-names': algorithmNames,
    'owned-promises': ownedPromises,
    'own-fields': ownFields,
    portable,
    promises,
    'type-names': typeNames,
  },
})

// The first example of a README as a program.
import { transformSync } from '@swc/core'
import { isBuiltin } from 'node:module'

/**
 * @param {string} readme
 * @returns {string} in JavaScript.
 */
export function firstExample(readme) {
  const [, code] = /^```(?:ts|js)\n([^]*?)^```$/m.exec(readme) ?? []
  if (!code) throw new Error('the README has no example')
  return transformSync(code, {
    jsc: {
      target: 'es2022',
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
    },
  }).code
}

/**
 * The packages of others that a program imports.
 * @param {string} code
 */
export function importsOf(code) {
  return [...code.matchAll(/^import (?:[^'"]+ from )?['"]([^'"]+)['"]/gm)]
    .map(([, specifier = '']) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier)
    .filter((name) => name !== '.' && name !== '..' && !isBuiltin(name) && !name.startsWith('@sluice/'))
}

/**
 * The packages of others that the first `npm install` of a page names.
 * @param {string} page
 */
export function installedBy(page) {
  const [, line = ''] = /^npm install (.*)$/m.exec(page) ?? []
  return line.split(' ').filter((name) => !/^(?:|-.*|@sluice\/.*)$/.test(name))
}

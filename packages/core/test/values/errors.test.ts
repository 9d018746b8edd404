import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  InputError,
  type InputErrorCode,
  PolicyError,
  type PolicyErrorCode,
  SluiceError,
  type SluiceErrorCode,
  StoreError,
  type StoreErrorCode,
} from '../../src/index.js'

const root = join(__dirname, '../../../..')

describe('docs/errors.md', () => {
  it('has a section for every code in the sources, and none besides', () => {
    const sections = readFileSync(join(root, 'docs/errors.md'), 'utf8').matchAll(/^### ([A-Z_]+)$/gm)
    expect(new Set([...sections].map((match) => match[1]))).toEqual(codesInSources())
  })
})

describe('the code of an error', () => {
  it('is of the type of its class, which a type guard of the class leads to', () => {
    const errors: readonly SluiceError[] = [
      new PolicyError('INVALID_LIMIT', ''),
      new InputError('INVALID_KEY', ''),
      new StoreError('CLOSED', ''),
      new SluiceError('ALREADY_SETTLED', ''),
    ]
    const found = errors.map((error): readonly [string, SluiceErrorCode] => {
      if (error instanceof PolicyError) return ['policy', error.code satisfies PolicyErrorCode]
      if (error instanceof InputError) return ['input', error.code satisfies InputErrorCode]
      if (error instanceof StoreError) return ['store', error.code satisfies StoreErrorCode]
      return ['other', error.code]
    })
    expect(found).toEqual([
      ['policy', 'INVALID_LIMIT'],
      ['input', 'INVALID_KEY'],
      ['store', 'CLOSED'],
      ['other', 'ALREADY_SETTLED'],
    ])
  })

  it('cannot be one of another class', () => {
    // @ts-expect-error a key is no part of a policy
    expect(new PolicyError('INVALID_KEY', '').code).toBe('INVALID_KEY')
  })
})

/**
 * Codes are in the sources as quoted texts, or as keys of the messages in setup-warnings.ts. The members of a union type do not
 * count: each must be used somewhere.
 */
function codesInSources(): Set<string> {
  const codes = new Set<string>(['CLOSED'])
  for (const name of readdirSync(join(root, 'packages'))) {
    const { private: isPrivate } = JSON.parse(
      readFileSync(join(root, 'packages', name, 'package.json'), 'utf8'),
    )
    if (isPrivate) continue
    const folder = join(root, 'packages', name, 'src')
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('.ts')) continue
      const text = readFileSync(join(folder, file), 'utf8').replaceAll(/^ {2}\| '.*$/gm, '')
      for (const match of text.matchAll(/'([A-Z]+(?:_[A-Z]+)+)'|^ {2}([A-Z]+(?:_[A-Z]+)+):$/gm)) {
        const code = match[1] ?? match[2]!
        // Node's own codes, and variables of the environment.
        if (!/^(?:ERR_.*|MODULE_NOT_FOUND|CONFORMANCE_.*)$/.test(code)) codes.add(code)
      }
    }
  }
  return codes
}

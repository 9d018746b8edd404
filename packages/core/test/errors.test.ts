import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(__dirname, '../../..')

describe('docs/errors.md', () => {
  it('has a section for every code in the sources, and none besides', () => {
    const sections = readFileSync(join(root, 'docs/errors.md'), 'utf8').matchAll(/^### ([A-Z_]+)$/gm)
    expect(new Set([...sections].map((match) => match[1]))).toEqual(codesInSources())
  })
})

/** Codes appear in the sources as quoted text, or as a key of the messages in setup-warnings.ts. */
function codesInSources(): Set<string> {
  const codes = new Set<string>(['CLOSED'])
  for (const folder of readdirSync(join(root, 'packages')).map((name) =>
    join(root, 'packages', name, 'src'),
  )) {
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('.ts')) continue
      const text = readFileSync(join(folder, file), 'utf8')
      for (const match of text.matchAll(/'([A-Z]+(?:_[A-Z]+)+)'|^ {2}([A-Z]+(?:_[A-Z]+)+):$/gm)) {
        const code = match[1] ?? match[2]!
        if (!code.endsWith('MODULE_NOT_FOUND')) codes.add(code) // Node's own
      }
    }
  }
  return codes
}

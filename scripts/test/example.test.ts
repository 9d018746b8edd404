import { firstExample, importsOf } from '../release/example.js'

const README = `# One

\`\`\`sh
npm install one
\`\`\`

\`\`\`ts
import express, { type Request } from 'express'
import { rateLimit } from '@sluice/express'
import { once } from 'node:events'
import { a } from '@scope/other/deep'
import './own.js'

const limit: number = 1
const app = express().use(rateLimit({ limit, window: a }))
await once(app, 'listening')
\`\`\`

\`\`\`ts
second()
\`\`\`
`

describe('the example that a release runs', () => {
  it('is the first of the README, without its types', () => {
    const code = firstExample(README)
    expect(code).toContain("from '@sluice/express'")
    expect(code).toContain('const limit = 1')
    expect(code).not.toMatch(/npm install|second|Request/)
  })

  it('needs the packages of others that it imports', () => {
    expect(importsOf(README)).toEqual(['express', '@scope/other'])
  })

  it('has to be there', () => {
    expect(() => firstExample('# Nothing\n')).toThrow('the README has no example')
  })
})

import { firstExample, importsOf, installedBy } from '../release/example.js'
import { Project } from './project.js'

const README = `# One

\`\`\`sh
npm install --save-dev @sluice/express one @scope/other
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

  it('needs the packages of others that the README installs', () => {
    expect(installedBy(README)).toEqual(['one', '@scope/other'])
    expect(installedBy('# Nothing\n')).toEqual([])
  })

  it('has to be there', () => {
    expect(() => firstExample('# Nothing\n')).toThrow('the README has no example')
  })
})

describe('what runs an example', () => {
  const project = new Project()
  const run = (code: string) => project.write({ 'a.mjs': code }).run('release/run-example.js', 'a.mjs')
  /** A server that says a limit of 2 and denies after so many. */
  const denyingAfter = (served: number) => `import { createServer } from 'node:http'
    let calls = 0
    const answer = (_, res) => res.writeHead(++calls > ${served} ? 429 : 200, { 'X-RateLimit-Limit': '2' }).end()
    createServer(answer).listen(3000)`

  it('asks what it serves until it is denied, where the limit says', () => {
    expect(run(denyingAfter(2))).toEqual({ status: 0, output: 'served 2 of 2, then 429\n' })
  })

  it.each([
    [1, '429 was due after 2'],
    [Infinity, 'no request was denied'],
  ])('finds one that denies after %s', (served, why) => {
    expect(run(denyingAfter(served))).toEqual({ status: 1, output: expect.stringContaining(why) as string })
  })

  it('leaves sockets of the file system where they are', () => {
    const code = `import { connect, createServer } from 'node:net'
      const server = createServer().listen('a.sock')
      await new Promise((resolve, reject) => connect('a.sock', resolve).on('error', reject))
      server.close()`
    expect(run(code)).toEqual({ status: 0, output: 'ran to its end\n' })
  })
})

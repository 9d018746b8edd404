import { onSources } from '@sluice/harness/processes'
import { freePort } from '@sluice/harness/redis'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const README = readFileSync('README.md', 'utf8')
const [, application = ''] = /^```ts\n([^]*?)^```$/m.exec(README) ?? []
const [, shown = ''] = /^```http\n([^]*?)^```$/m.exec(README) ?? []

describe('README', () => {
  it('has at most 130 lines', () => expect(README.trimEnd().split('\n').length).toBeLessThanOrEqual(130))

  it('answers the 101st request to its first example as it shows', async () => {
    const port = await freePort()
    const file = join(__dirname, `.readme-${port}.mjs`)
    writeFileSync(file, application.replace('3000', String(port)))
    const child = spawn(process.execPath, [...onSources(), file], { stdio: 'inherit' })
    try {
      const answers = []
      while (answers.length <= 100) {
        expect(child.exitCode).toBeNull()
        const reply = await fetch(`http://localhost:${port}`).catch(() => wait(20))
        if (reply) answers.push({ reply, body: await reply.text() })
      }
      expect(answers.slice(0, 100).every(({ reply, body }) => reply.ok && body === 'hello')).toBe(true)
      const { reply, body } = answers[100]!
      expect(linesOf(reply, body)).toEqual(unified(shown.trimEnd()).split('\n'))
    } finally {
      if (child.kill('SIGKILL')) await once(child, 'exit')
      rmSync(file)
    }
  }, 30_000)
})

/** An answer as `curl -i` prints it, with the headers that README shows. */
function linesOf({ status, statusText, headers }: Response, body: string): readonly string[] {
  const names = [...shown.matchAll(/^([\w-]+):/gm)].map(([, name = '']) => name)
  const lines = names.map((name) => `${name}: ${headers.get(name)}`)
  return unified([`HTTP/1.1 ${status} ${statusText}`, ...lines, '', body].join('\n')).split('\n')
}

/** Instants, and seconds of which some may have passed, are not compared. */
function unified(answer: string): string {
  return answer.replaceAll(/\d{10}/g, 'TIME').replaceAll(/\b(?:60|5\d)(?= seconds|$)/gm, 'SECONDS')
}

import { gcra } from '@sluice/core'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { FrameReader, FrameWriter } from '../src/frames.js'
import { PROTOCOL, REPLY, REQUEST } from '../src/protocol.js'
import { Meeting } from './meeting.js'

describe('a server that answers with what makes no sense', () => {
  let meeting: Meeting
  let server: Server
  beforeEach(() => {
    meeting = new Meeting()
  })
  afterEach(async () => {
    await meeting.end()
    await new Promise((resolve) => server.close(resolve))
  })

  /** Greets, and gives every other request the reply that `answer` writes. */
  async function serve(answer: (writer: FrameWriter) => void): Promise<void> {
    const folder = join(meeting.folder, `${PROTOCOL}-test`)
    mkdirSync(folder, { mode: 0o700 })
    server = createServer((socket) => {
      const reader = new FrameReader()
      socket.on('data', (chunk) => {
        const writer = new FrameWriter()
        reader.push(chunk, ({ kind }) => {
          if (kind === REQUEST.hello) writer.add(REPLY.hello, 0, [PROTOCOL, 1])
          else if (kind !== REQUEST.open) answer(writer)
        })
        if (!writer.isEmpty) socket.write(writer.take())
      })
      socket.on('error', () => {})
    }).listen(join(folder, '1'))
    await once(server, 'listening')
  }

  it.each([
    ['a reply of another kind', (writer: FrameWriter) => writer.add(REPLY.states, 0, [1])],
    ['an answer without its numbers', (writer: FrameWriter) => writer.add(REPLY.answer, 0, [1])],
  ])('fails every call that has no answer: %s', async (_, answer) => {
    await serve(answer)
    const client = meeting.open({ serve: false })
    await client.ready()
    const keyspace = client.keyspace('api', [gcra({ limit: 10, window: '1d' })], () => {})
    const calls = Array.from({ length: 3 }, async () => keyspace.decide('consume', 'k', 1, 0))
    const failed = { status: 'rejected', reason: { code: 'STORE_UNAVAILABLE', sent: true } }
    expect(await Promise.allSettled(calls)).toMatchObject([failed, failed, failed])
  })
})

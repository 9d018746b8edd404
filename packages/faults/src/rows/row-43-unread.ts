import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { resolve } from 'node:path'
import { pause, until } from '@sluice/harness/redis'
import { WebSocket } from 'ws'
import { type Member, startMember } from '../fleet.js'
import { together } from '../outage.js'
import type { Outcome, Row } from '../row.js'
import type { UnreadJob, UnreadResult } from '../workers/unread.js'

/**
 * A WebSocket client sends messages that are denied, and reads nothing: its connection is closed with the status 1008, and the
 * process does not fill with what it was to read.
 */
export const row: Row = { number: 43, fault: 'unread denials', run }

const MOST_BYTES = 20_000_000
const AT_ONCE = 500

/** The applications, with the path of a connection, what a client says first, and a message. */
const SERVERS = [
  { file: 'nest/test/unread-app.ts', name: 'ws', path: '', message: '{"event":"echo"}' },
  {
    file: 'nest/test/unread-app.ts',
    name: 'socket.io',
    path: 'socket.io/?EIO=4&transport=websocket',
    first: '40',
    message: '42["echo"]',
  },
  { file: 'hono/test/unread-app.ts', name: 'Hono', path: '', message: 'echo' },
]

/**
 * Sends messages to servers whose denials the client does not read. Passes if memory stays bounded, and the server ends the
 * connection. `share` is the part of the full load, 0 to 1.
 */
async function run(share: number): Promise<Outcome> {
  const messages = Math.max(25_000, 100_000 * share)
  const outcomes: Outcome[] = []
  for (const server of SERVERS) {
    const member = await startMember('packages/faults/src/workers/unread.ts', resolve('.'))
    try {
      outcomes.push(await flood(member, server, messages))
    } finally {
      await member.end()
    }
  }
  return together(outcomes)
}

/**
 * Floods one server with messages without reading its answers. Passes if its memory stays within the bar, and it ends the
 * connection with code 1008.
 */
async function flood(member: Member, served: (typeof SERVERS)[number], messages: number): Promise<Outcome> {
  const { file, name, path, first, message } = served
  await member.prepare({ file, name } satisfies UnreadJob)
  const { port } = (await member.go()) as UnreadResult
  const client = new WebSocket(`ws://127.0.0.1:${port}/${path}`)
  const [upgraded, greeted] = [once(client, 'upgrade'), first && once(client, 'message')]
  await once(client, 'open')
  const [{ socket }] = (await upgraded) as [IncomingMessage]
  if (first !== undefined) {
    await greeted
    client.send(first)
    await once(client, 'message')
  }
  socket.pause()
  // A few at a time: many would be denied in one turn of the server, and what it writes in one turn goes past its queue.
  for (let i = 0; i < messages && client.readyState === WebSocket.OPEN; i++) {
    client.send(message)
    if (i % AT_ONCE === 0) await until('the messages to be written', () => client.bufferedAmount === 0)
  }
  let seen = (await member.go()) as UnreadResult
  await until('the messages to have been denied', async () => {
    await pause(500) // each look collects garbage there
    const before = seen.denied
    seen = (await member.go()) as UnreadResult
    return client.bufferedAmount === 0 && seen.denied === before
  })
  const { growth, denied } = seen
  socket.resume()
  const closed = once(client, 'close').then(([code]) => code as number)
  const code = await Promise.race([closed, pause(10_000)])
  return {
    pass: growth <= MOST_BYTES && code === 1008,
    figure:
      `${name}: ${messages} messages, ${denied} denied, closed with ${code ?? 'nothing'}, grown by ${(growth / 1e6).toFixed(1)} MB ` +
      `(bar ${MOST_BYTES / 1e6})`,
  }
}

import { connect } from 'node:net'
export type { Argument } from './resp.js'
import { type Argument, encode, type Reply, ReplyParser } from './resp.js'

/*
 * Raw commands to a server, a connection each: for tests that must not depend on the client they test.
 */

export interface Address {
  readonly host: string
  readonly port: number
}

/** An answer with its strings decoded; `T` says what the caller expects, and is not checked. */
export type Answer = string | number | null | Answer[]

/** Sends one command. Rejects with Redis's message when it is refused, and when no answer comes within 5 s. */
export async function command<T extends Answer = string>(
  to: Address,
  ...args: [string, ...Argument[]]
): Promise<T> {
  return decoded(await commandBytes(to, ...args)) as T
}

/** Sends one command as `command` does, and returns strings of the reply as bytes, for values that are packed. */
export async function commandBytes(to: Address, ...args: [string, ...Argument[]]): Promise<Reply> {
  const [reply] = await pipeline(to, [args])
  if (reply instanceof Error) throw reply
  return reply!
}

/** Sends commands on one connection, where the later depend on the earlier (ASKING, AUTH, MULTI). Errors are values. */
export function pipeline(to: Address, commands: readonly (readonly Argument[])[]): Promise<Reply[]> {
  return new Promise((resolve, reject) => {
    const parser = new ReplyParser()
    const replies: Reply[] = []
    const socket = connect(to.port, to.host)
    const fail = (why: string) => {
      socket.destroy()
      reject(new Error(`${String(commands[0]?.[0])} to ${to.host}:${to.port}: ${why}`))
    }
    socket.setTimeout(PATIENCE_MS, () => fail(`no answer within ${PATIENCE_MS} ms`))
    socket.on('error', (error) => fail(error.message))
    socket.on('close', () => fail('closed without an answer'))
    socket.on('data', (chunk) => {
      replies.push(...parser.push(chunk))
      if (replies.length < commands.length) return
      resolve(replies)
      socket.destroy()
    })
    socket.write(Buffer.concat(commands.map(encode)))
  })
}

/** Every answer Redis gives to INFO, as fields; `section` as for INFO. */
export async function info(of: Address, section = 'everything'): Promise<Record<string, string>> {
  const lines = (await command(of, 'INFO', section)).split('\r\n')
  const fields = lines.filter((line) => line.includes(':') && !line.startsWith('#'))
  return Object.fromEntries(fields.map((line) => [cut(line, ':')[0], cut(line, ':')[1]]))
}

/** How often a server has carried out a command since it was started or CONFIG RESETSTAT. */
export async function callsOf(server: Address, command: string): Promise<number> {
  const { [`cmdstat_${command}`]: stat = 'calls=0,failed_calls=0' } = await info(server, 'commandstats')
  const count = (field: string) => Number(new RegExp(`(?:^|,)${field}=(\\d+)`).exec(stat)![1])
  return count('calls') - count('failed_calls')
}

/**
 * A reply with its bytes as text.
 * @throws {Error} for a reply that is an error, or holds one.
 */
function decoded(reply: Reply): Answer {
  if (reply instanceof Error) throw reply
  if (Array.isArray(reply)) return reply.map(decoded)
  return Buffer.isBuffer(reply) ? reply.toString() : reply
}

/** The text before the first `at`, and the text behind it. */
function cut(line: string, at: string): [string, string] {
  const index = line.indexOf(at)
  return [line.slice(0, index), line.slice(index + 1)]
}

const PATIENCE_MS = 5000

import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { type Address, command } from './command.js'
import { encode, ReplyParser } from './resp.js'
import { until } from './until.js'

export interface Monitor {
  /** The commands that the server has run since, as MONITOR prints it: `time [db source] "command" "argument" ...`. */
  readonly lines: readonly string[]
  /** Ends it and gives every line of a command that was answered before. */
  stop(): Promise<readonly string[]>
}

/** Watches the commands of a server from now on; those that scripts run have `lua` as their source. */
export async function monitor(server: Address): Promise<Monitor> {
  const parser = new ReplyParser()
  const received: string[] = []
  const socket = connect(server.port, server.host).unref()
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    for (const line of parser.push(chunk)) received.push(String(line))
  })
  socket.write(encode(['MONITOR']))
  await until('MONITOR to begin', () => received[0] === 'OK')
  const lines: string[] = received
  lines.shift()
  return {
    lines,
    async stop() {
      const marker = randomUUID()
      await command(server, 'ECHO', marker)
      await until('MONITOR to catch up', () => lines.some((line) => line.includes(marker)))
      socket.destroy()
      return lines.slice(
        0,
        lines.findIndex((line) => line.includes(marker)),
      )
    },
  }
}

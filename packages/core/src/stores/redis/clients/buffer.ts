import { Buffer } from 'node:buffer' // the global is a getter

/** The keys or arguments as strings and Buffers, which is what clients require. No bytes are copied. */
export function sendable(items: readonly (string | Uint8Array)[]): (string | Buffer)[] {
  return items.every(isSendable) ? (items as (string | Buffer)[]) : items.map(asSendable)
}

function isSendable(item: string | Uint8Array): boolean {
  return typeof item === 'string' || Buffer.isBuffer(item)
}

function asSendable(item: string | Uint8Array): string | Buffer {
  if (typeof item === 'string' || Buffer.isBuffer(item)) return item
  return Buffer.from(item.buffer, item.byteOffset, item.byteLength)
}

/** A command of ioredis or iovalkey, as far as it is used: its name, and the strings and Buffers behind it. */
interface Command {
  readonly name: string
  readonly args: readonly (string | Buffer)[]
  toWritable?: unknown
}

/**
 * Returns the command with a writer that makes one text of its strings. The client's own writer makes an item of each string
 * and copies these one by one, which takes most of the time that a call with many keys takes in the client.
 */
export function inOneBuffer(command: object): object {
  if ('toWritable' in command) command.toWritable = toWritable
  return command
}

/** The command in Redis's protocol. */
function toWritable(this: Command): Buffer {
  const { name, args } = this
  const pieces: Buffer[] = []
  let text = `*${args.length + 1}\r\n$${name.length}\r\n${name}\r\n`
  for (const arg of args) {
    if (typeof arg === 'string') text += `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`
    else {
      pieces.push(Buffer.from(`${text}$${arg.length}\r\n`), arg)
      text = '\r\n'
    }
  }
  pieces.push(Buffer.from(text))
  return Buffer.concat(pieces)
}

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
  readonly args: (string | Buffer)[]
  toWritable?: unknown
}

/**
 * Returns the command with these keys and arguments behind its own ones, and with a writer that makes one text of its strings.
 * The client's constructor looks at each argument three times, and its own writer makes an item of each string and
 * copies these one by one: that took most of the time that a call with many keys takes in the client.
 */
export function inOneBuffer(command: object, lists: readonly (readonly (string | Buffer)[])[] = []): object {
  for (const list of lists) for (const item of list) (command as Command).args.push(item)
  if ('toWritable' in command) command.toWritable = toWritable
  return command
}

/**
 * The command in Redis's protocol. Nearly all texts are ASCII, so their characters are taken for their bytes, and only
 * where that was wrong each is measured.
 */
function toWritable(this: Command): Buffer {
  return encoded(this, charactersOf) ?? encoded(this, bytesOf)!
}

/** Undefined if a text has more bytes than characters, and `lengthOf` counts characters. */
function encoded({ name, args }: Command, lengthOf: (text: string) => number): Buffer | undefined {
  const pieces: Buffer[] = []
  let characters = 0
  let bytes = 0
  const add = (text: string): void => {
    const piece = Buffer.from(text)
    characters += text.length
    bytes += piece.length
    pieces.push(piece)
  }
  let text = `*${args.length + 1}${headerOf(name.length)}${name}`
  for (const arg of args) {
    if (typeof arg === 'string') text += headerOf(lengthOf(arg)) + arg
    else {
      add(text + headerOf(arg.length))
      pieces.push(arg)
      text = ''
    }
  }
  add(`${text}\r\n`)
  return lengthOf === charactersOf && bytes > characters ? undefined : Buffer.concat(pieces)
}

function charactersOf(text: string): number {
  return text.length
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text)
}

/** What stands before a text or bytes of this length, behind those before them. */
function headerOf(length: number): string {
  return HEADERS[length] ?? `\r\n$${length}\r\n`
}

const HEADERS: readonly string[] = Array.from({ length: 256 }, (_, length) => `\r\n$${length}\r\n`)

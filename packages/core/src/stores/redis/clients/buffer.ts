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

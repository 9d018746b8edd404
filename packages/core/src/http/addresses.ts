import type { RequestReader } from './platform.js'

/*
 * Node forgets the address of a connection that is gone. A caller that hangs up while a session is looked up would be
 * counted as one without an address, which is a second allowance: so addresses are read before anything is waited for,
 * and kept with the request for all limiters on its way.
 */

/** A registered symbol is the same one when the ESM and the CJS build of this package meet in one process. */
const ADDRESSES = Symbol.for('sluice.addresses')

/** Where a request came from, as of when the first limiter saw it. */
interface Addresses {
  readonly address: string | undefined
  readonly socketAddress: string | undefined
  /** Whether the connection was gone by then, with its address. */
  readonly hungUp: boolean
}

/** What is read of a request, and the object that stays the same on its way. */
export interface AddressSource<Req> extends RequestReader<Req> {
  identity(req: Req): object
}

/** The addresses of a request: as they were kept, or as they are now. */
export function addressesOf<Req>(req: Req, source: AddressSource<Req>): Addresses {
  return keptOf(req, source)[ADDRESSES] ?? readAddresses(req, source)
}

/** The framework's address alone, which is all that most requests need. */
export function addressOf<Req>(req: Req, source: AddressSource<Req>): string | undefined {
  const kept = keptOf(req, source)[ADDRESSES]
  if (kept) return kept.address
  try {
    return source.address(req)
  } catch {
    return readAddresses(req, source).address
  }
}

/** Keeps the addresses of a request, before anything is waited for. */
export function keepAddresses<Req>(req: Req, source: AddressSource<Req>): void {
  keptOf(req, source)[ADDRESSES] ??= readAddresses(req, source)
}

function keptOf<Req>(req: Req, source: AddressSource<Req>): { [ADDRESSES]?: Addresses } {
  return source.identity(req)
}

/** Thrown by keys that need an address where the caller hung up before there was one. The guard ends the request. */
export class HungUpError extends Error {
  override readonly name = 'HungUpError'
}

export function isHungUp(error: unknown): error is HungUpError {
  // Not instanceof: the ESM and the CJS build of this package may meet in one process.
  return (error as Error | undefined)?.name === 'HungUpError'
}

function readAddresses<Req>(req: Req, source: AddressSource<Req>): Addresses {
  try {
    const address = source.address(req)
    const socketAddress = source.socketAddress(req)
    const hungUp = !address && !socketAddress && source.hungUp?.(req) === true
    return { address, socketAddress, hungUp }
  } catch (error) {
    // HTTP/2 throws where a session is gone.
    if (source.hungUp?.(req)) return { address: undefined, socketAddress: undefined, hungUp: true }
    throw error
  }
}

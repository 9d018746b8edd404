import { keyspaceOver, type Store, StoreError, type Update } from '@sluice/core/store'

/*
 * The state of each key in a Durable Object of its own, of which there is one in the world. Two requests to it make a decision. Of
 * calls for one key that meet one is first, and the others begin again: this suits the keys of callers, not one key for all of them.
 */

/** What the objects and their bindings have, of the types of Cloudflare. */
interface Kept {
  readonly bytes: Uint8Array
  readonly version: number
}
interface Storage {
  get(key: 'state'): Promise<Kept | undefined>
  put(key: 'state', value: Kept): Promise<void>
  setAlarm(ms: number): Promise<void>
  deleteAll(): Promise<void>
}
export interface Objects {
  idFromName(name: string): unknown
  get(id: never): { fetch(url: string, init?: RequestInit): Promise<Response> }
}

/** Keeps the state of one key: GET reads it, PUT and DELETE write if it is still the version that was read. */
export class LimitState {
  #kept: Kept | undefined
  #loaded: Promise<void> | undefined

  constructor(readonly ctx: { readonly storage: Storage }) {}

  async fetch(request: Request): Promise<Response> {
    const { storage } = this.ctx
    await (this.#loaded ??= storage.get('state').then((found) => void (this.#kept = found)))
    const bytes = request.method === 'PUT' ? new Uint8Array(await request.arrayBuffer()) : undefined
    // Nothing is waited for between the comparison and the change, so no other request comes in between.
    const version = String(this.#kept?.version ?? 0)
    const headers = { etag: version, 'x-now': String(Date.now()) }
    if (request.method === 'GET') return new Response(this.#kept?.bytes.slice() ?? null, { headers })
    if (request.headers.get('if-match') !== version) return new Response(null, { status: 412 })
    this.#kept = bytes && { bytes, version: Math.floor(Math.random() * 2 ** 52) }
    if (!this.#kept) await storage.deleteAll()
    else {
      await storage.put('state', this.#kept)
      await storage.setAlarm(Number(request.headers.get('x-expires')))
    }
    return new Response(null, { status: 204 })
  }

  /** The state matters no more. */
  alarm(): Promise<void> {
    this.#kept = undefined
    return this.ctx.storage.deleteAll()
  }
}

/** A store whose states lie in Durable Objects. */
export function objectStore(objects: Objects): Store {
  const update: Update = async (id, change) => {
    const object = objects.get(objects.idFromName(id) as never)
    const url = 'https://limit/state'
    for (;;) {
      const read = await object.fetch(url).catch(failed)
      const bytes = new Uint8Array(await read.arrayBuffer())
      const before = bytes.length > 0 ? bytes : undefined
      const { result, state, expiresAt } = change(before, Number(read.headers.get('x-now')) * 1000)
      if (state === before) return result
      const headers = {
        'if-match': read.headers.get('etag')!,
        'x-expires': String(Math.ceil(expiresAt / 1000)),
      }
      const body = state?.slice() ?? null
      const written = await object
        .fetch(url, { method: state ? 'PUT' : 'DELETE', headers, body })
        .catch(failed)
      if (written.status !== 412) return result // 412: another call was first
    }
  }
  return {
    // A denied caller is denied again without asking, for up to a second.
    denialCache: { maxAge: 1_000_000, maxKeys: 10_000 },
    keyspace: (name, policies, report, penalty) => keyspaceOver(update, name, policies, report, penalty),
    now: () => Math.floor(performance.now() * 1000),
    close() {},
  }
}

function failed(error: unknown): never {
  throw new StoreError('STORE_UNAVAILABLE', 'the Durable Object did not answer', { cause: error })
}

import type { Store } from '@sluice/core'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type MachineStore, machineStore, type MachineStoreOptions } from '../src/index.js'

/** A folder of its own, in which stores of one name meet. `end` closes all of them. */
export class Meeting {
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  readonly #stores = new Set<Store>()

  open(options: Partial<MachineStoreOptions> = {}): MachineStore {
    const store = machineStore({ name: 'test', folder: this.folder, ...options })
    this.#stores.add(store)
    return store
  }

  /** A store in this process that serves, and one that reaches it. */
  async pair(
    options: Partial<MachineStoreOptions> = {},
  ): Promise<[server: MachineStore, client: MachineStore]> {
    const server = this.open({ ...options, serve: true })
    await server.ready()
    const client = this.open({ ...options, serve: false })
    await client.ready()
    return [server, client]
  }

  async end(): Promise<void> {
    for (const store of this.#stores) await store.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

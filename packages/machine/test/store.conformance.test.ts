import type { Store } from '@sluice/core'
import { conformance } from '@sluice/testing/internal'
import { Meeting } from './meeting.js'

const options = { lawRuns: 10 }

/** Sessions of the kit follow one another, so that a name of its own for each keeps them apart. */
let sessions = 0
const meeting = new Meeting()
afterAll(() => meeting.end())

conformance(
  'machine, in the process that serves,',
  async (clock) => {
    const store = meeting.open({ name: `${++sessions}`, serve: true, clock })
    await store.ready()
    return store
  },
  options,
)

conformance(
  'machine, over the socket,',
  async (clock): Promise<Store> => {
    const [server, client] = await meeting.pair({ name: `${++sessions}`, clock })
    const close = client.close.bind(client)
    return Object.assign(client, {
      close: async () => {
        await close()
        await server.close()
      },
    })
  },
  options,
)

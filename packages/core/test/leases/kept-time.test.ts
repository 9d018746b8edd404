import { RemoteStore } from '@sluice/harness/stores'
import { guard } from '../../src/stores/authoring.js'

const onStoreError = { mode: 'throw', share: 1 } as const

it.each([undefined, { ttl: 1000, size: 10, maxKeys: 10 }])(
  'waits by the clock of the machine that keeps the time of its store, with leases %j',
  (leases) => {
    const store = Object.assign(new RemoteStore(() => 0), { keepsTime: true })
    expect(guard.store(store, { onStoreError, deadline: 50, leases }).keepsTime).toBe(true)
  },
)

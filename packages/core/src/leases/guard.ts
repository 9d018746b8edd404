import { decideParts } from '../resilience/decide-parts.js'
import { resilientPermits, resilientStore } from '../resilience/resilient-store.js'
import type { StoreGuard } from '../stores/store.js'
import { leasedStore } from './leased-store.js'

/** The guard of every store that is not in this process: deadline, circuit, failure mode, denial cache, leases, and calls on several keys. */
export const guard: StoreGuard = {
  store: (store, settings) => leasedStore(resilientStore(store, settings), settings.leases),
  permits: resilientPermits,
  decideParts,
}

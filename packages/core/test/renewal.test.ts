import { bytesInUse } from '@sluice/harness/figures'
import { Renewal } from '../src/semaphore/renewal.js'
import { StoreError } from '../src/index.js'
import { PermitsElsewhere } from './permits-elsewhere.js'

beforeEach(() => jest.useFakeTimers())
afterEach(() => jest.useRealTimers())

it('releases are forgotten when their lease is over, also while a permit of the key is held in an outage', async () => {
  const store = new PermitsElsewhere()
  const renewal = new Renewal({ permits: store.permits(), leaseMs: 1000, limit: () => 1 })
  renewal.hold('', 0, () => {})
  store.answer = () => Promise.reject(new StoreError('STORE_UNAVAILABLE', 'as the test says'))
  const before = bytesInUse()
  for (let ticket = 1; ticket <= TICKETS; ticket++) {
    await renewal.release('', ticket)
    store.calls.length = 0
  }
  expect((bytesInUse() - before) / TICKETS).toBeGreaterThan(16)
  await jest.advanceTimersByTimeAsync(2000)
  expect((bytesInUse() - before) / TICKETS).toBeLessThan(8)
})

const TICKETS = 50_000

import { Renewal } from '../../src/semaphore/renewal.js'
import { StoreError } from '../../src/index.js'
import { PermitsElsewhere } from './permits-elsewhere.js'

beforeEach(() => jest.useFakeTimers())
afterEach(() => jest.useRealTimers())

it('releases are forgotten when their lease is over, also while a permit of the key is held in an outage', async () => {
  const store = new PermitsElsewhere()
  const renewal = new Renewal(store.permits(), 1000, () => 1)
  renewal.hold('', 0, () => {})
  store.answer = () => Promise.reject(new StoreError('STORE_UNAVAILABLE', 'as the test says'))
  for (const ticket of [1, 2, 3]) await renewal.release('', ticket)
  await jest.advanceTimersByTimeAsync(900)
  expect(renewal.releasing('')).toEqual([1, 2, 3])
  await jest.advanceTimersByTimeAsync(300)
  expect(renewal.releasing('')).toEqual([])
  expect(renewal.held('')).toEqual([0])
})

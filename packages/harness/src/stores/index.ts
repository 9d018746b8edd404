export { fakeOnly } from './faked-time.js'
export { RemoteStore } from './remote-store.js'
export { settled, SlowStore, Timeline } from './slow-store.js'

export { RemoteStore } from './remote-store.js'

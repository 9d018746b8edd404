// The cases that every HTTP adapter is tested by, over real connections. They are written for Jest.
export type { Adapter, Answer, App, Feature, Route, Served } from './adapter.js'
export { adapterKit } from './kit.js'
export { listening } from './listening.js'
export { resetTrials } from './resets.js'
export { lackOf, type Trial } from './trial.js'
export { unaddressedTrials } from './unaddressed.js'
export { chargesOverHttp2, endless, LARGE, statusOf } from './over-http2.js'

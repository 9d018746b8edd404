export { type OtherParty, startOtherParty } from './other-party.js'

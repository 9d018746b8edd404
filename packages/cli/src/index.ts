/*
 * Logs read, limits suggested and policies replayed, without Node: the same in a service, a terminal and a browser.
 */
export type { LoggedCall } from './logs/calls.js'
export { FORMAT_NAMES, NoLogError } from './logs/detect.js'
export type { Habits } from './logs/habits.js'
export type { Ledger, Skipped, SkipReason } from './logs/ledger.js'
export { type LogSource, type Reading, readLogs } from './logs/read-logs.js'
export type { FieldNames, ReadOptions, Selector } from './logs/read-options.js'
export { Spread, type Way } from './logs/spread.js'
export type { Basis } from './trace/basis.js'
export * from './trace/replay.js'
export * from './trace/suggest.js'
export type { Figures, HitCaller } from './trace/tally.js'
export { memoryShelf, type Shelf } from './trace/trace.js'

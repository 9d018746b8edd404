import type { LoggedCall, Reading } from '@sluice/cli'
import { HabitsByCaller } from '../src/logs/habits.js'
import { Ledger } from '../src/logs/ledger.js'

/** Calls as a log with exact times gives them. */
export function readingOf(calls: readonly LoggedCall[], resolution = 1): Reading {
  async function* batches(): AsyncGenerator<LoggedCall[]> {
    for (let i = 0; i < calls.length; i += 7) yield calls.slice(i, i + 7).map((call) => ({ ...call }))
  }
  return {
    ledger: new Ledger(),
    habits: new HabitsByCaller(),
    resolution,
    hasDurations: false,
    hasStatus: true,
    formats: new Map(),
    batches: batches(),
  }
}

export function callAt(at: number, key = 'a', cost = 1, denied = false): LoggedCall {
  return { at, duration: 0, keys: [key], cost, denied }
}

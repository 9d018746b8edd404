import { adapterCases } from '../adapter-cases.js'
import type { Row } from '../row.js'

/** Clients that retry by themselves come at the time that the headers named, and pass then. */
export const row: Row = {
  number: 25,
  fault: 'real clients',
  tested: true,
  run: () => adapterCases(['clients that retry by themselves']),
}

import { adapterCases } from '../adapter-cases.js'
import type { Row } from '../row.js'

/** No client gets more than the limit by making up where a request comes from, or by writing its path otherwise. */
export const row: Row = {
  number: 23,
  fault: 'spoofing',
  tested: true,
  run: () => adapterCases(['a caller that forges X-Forwarded-For', 'callers', 'the client of a gateway']),
}

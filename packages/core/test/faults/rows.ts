import type { Row } from './row.js'
import { row as keyFlood } from './row-18-key-flood.js'
import { row as evictionBypass } from './row-19-eviction-bypass.js'
import { row as massExpiry } from './row-20-mass-expiry.js'
import { row as input } from './row-21-input.js'
import { row as keyCollisions } from './row-22-key-collisions.js'
import { row as contextRetention } from './row-28-context-retention.js'

export const rows: readonly Row[] = [
  keyFlood,
  evictionBypass,
  massExpiry,
  input,
  keyCollisions,
  contextRetention,
]

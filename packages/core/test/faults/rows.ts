import type { Row } from './row.js'
import { row as redisClock } from './row-07-redis-clock.js'
import { row as stall } from './row-08-stall.js'
import { row as death } from './row-09-death.js'
import { row as partition } from './row-13-partition.js'
import { row as soak } from './row-26-soak.js'
import { row as shutdown } from './row-27-shutdown.js'
import { row as keyFlood } from './row-18-key-flood.js'
import { row as evictionBypass } from './row-19-eviction-bypass.js'
import { row as massExpiry } from './row-20-mass-expiry.js'
import { row as input } from './row-21-input.js'
import { row as keyCollisions } from './row-22-key-collisions.js'
import { row as contextRetention } from './row-28-context-retention.js'

export const rows: readonly Row[] = [
  redisClock,
  stall,
  death,
  partition,
  keyFlood,
  evictionBypass,
  massExpiry,
  input,
  keyCollisions,
  soak,
  shutdown,
  contextRetention,
]

import type { Row } from './row.js'
import { row as races } from './row-01-races.js'
import { row as saturation } from './row-02-saturation.js'
import { row as model } from './row-03-model.js'
import { row as retryAfter } from './row-04-retry-after.js'
import { row as drift } from './row-05-drift.js'
import { row as callersClocks } from './row-06-callers-clocks.js'
import { row as redisClock } from './row-07-redis-clock.js'
import { row as stall } from './row-08-stall.js'
import { row as death } from './row-09-death.js'
import { row as lostReply } from './row-10-lost-reply.js'
import { row as scriptFlush } from './row-11-script-flush.js'
import { row as failover } from './row-12-failover.js'
import { row as partition } from './row-13-partition.js'
import { row as cluster } from './row-14-cluster.js'
import { row as outOfMemory } from './row-15-out-of-memory.js'
import { row as brokenState } from './row-16-broken-state.js'
import { row as leastPrivilege } from './row-17-least-privilege.js'
import { row as keyFlood } from './row-18-key-flood.js'
import { row as evictionBypass } from './row-19-eviction-bypass.js'
import { row as massExpiry } from './row-20-mass-expiry.js'
import { row as input } from './row-21-input.js'
import { row as keyCollisions } from './row-22-key-collisions.js'
import { row as spoofing } from './row-23-spoofing.js'
import { row as policiesTogether } from './row-24-policies-together.js'
import { row as realClients } from './row-25-real-clients.js'
import { row as soak } from './row-26-soak.js'
import { row as shutdown } from './row-27-shutdown.js'
import { row as contextRetention } from './row-28-context-retention.js'
import { row as givingBack } from './row-29-giving-back.js'
import { row as burst } from './row-30-burst.js'
import { row as coldStart } from './row-31-cold-start.js'
import { row as rollingDeploy } from './row-32-rolling-deploy.js'
import { row as twoCopies } from './row-33-two-copies.js'
import { row as waits } from './row-34-waits.js'
import { row as machine } from './row-35-machine.js'
import { row as penalties } from './row-36-penalties.js'
import { row as resets } from './row-37-resets.js'
import { row as deniedCosts } from './row-38-denied-costs.js'

export const rows: readonly Row[] = [
  races,
  saturation,
  model,
  retryAfter,
  drift,
  callersClocks,
  redisClock,
  stall,
  death,
  lostReply,
  scriptFlush,
  failover,
  partition,
  cluster,
  outOfMemory,
  brokenState,
  leastPrivilege,
  keyFlood,
  evictionBypass,
  massExpiry,
  input,
  keyCollisions,
  spoofing,
  policiesTogether,
  realClients,
  soak,
  shutdown,
  contextRetention,
  givingBack,
  burst,
  coldStart,
  rollingDeploy,
  twoCopies,
  waits,
  machine,
  penalties,
  resets,
  deniedCosts,
]

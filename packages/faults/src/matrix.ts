import type { Row } from './row.js'
import { row as races } from './rows/row-01-races.js'
import { row as saturation } from './rows/row-02-saturation.js'
import { row as model } from './rows/row-03-model.js'
import { row as retryAfter } from './rows/row-04-retry-after.js'
import { row as drift } from './rows/row-05-drift.js'
import { row as callersClocks } from './rows/row-06-callers-clocks.js'
import { row as redisClock } from './rows/row-07-redis-clock.js'
import { row as stall } from './rows/row-08-stall.js'
import { row as death } from './rows/row-09-death.js'
import { row as lostReply } from './rows/row-10-lost-reply.js'
import { row as scriptFlush } from './rows/row-11-script-flush.js'
import { row as failover } from './rows/row-12-failover.js'
import { row as partition } from './rows/row-13-partition.js'
import { row as cluster } from './rows/row-14-cluster.js'
import { row as outOfMemory } from './rows/row-15-out-of-memory.js'
import { row as brokenState } from './rows/row-16-broken-state.js'
import { row as leastPrivilege } from './rows/row-17-least-privilege.js'
import { row as keyFlood } from './rows/row-18-key-flood.js'
import { row as evictionBypass } from './rows/row-19-eviction-bypass.js'
import { row as massExpiry } from './rows/row-20-mass-expiry.js'
import { row as input } from './rows/row-21-input.js'
import { row as keyCollisions } from './rows/row-22-key-collisions.js'
import { row as spoofing } from './rows/row-23-spoofing.js'
import { row as policiesTogether } from './rows/row-24-policies-together.js'
import { row as realClients } from './rows/row-25-real-clients.js'
import { row as soak } from './rows/row-26-soak.js'
import { row as shutdown } from './rows/row-27-shutdown.js'
import { row as contextRetention } from './rows/row-28-context-retention.js'
import { row as givingBack } from './rows/row-29-giving-back.js'
import { row as burst } from './rows/row-30-burst.js'
import { row as coldStart } from './rows/row-31-cold-start.js'
import { row as rollingDeploy } from './rows/row-32-rolling-deploy.js'
import { row as twoCopies } from './rows/row-33-two-copies.js'
import { row as waits } from './rows/row-34-waits.js'
import { row as machine } from './rows/row-35-machine.js'
import { row as penalties } from './rows/row-36-penalties.js'
import { row as resets } from './rows/row-37-resets.js'
import { row as deniedCosts } from './rows/row-38-denied-costs.js'
import { row as severalKeys } from './rows/row-39-several-keys.js'
import { row as overload } from './rows/row-40-overload.js'
import { row as postgres } from './rows/row-41-postgres.js'
import { row as strangers } from './rows/row-42-strangers.js'
import { row as unread } from './rows/row-43-unread.js'
import { row as bans } from './rows/row-44-bans.js'
import { row as settledLogs } from './rows/row-45-settled-logs.js'
import { row as groups } from './rows/row-46-groups.js'
import { row as killedConnections } from './rows/row-47-killed-connections.js'
import { row as calendars } from './rows/row-48-calendars.js'
import { row as policyFiles } from './rows/row-49-policy-files.js'
import { row as overrides } from './rows/row-50-overrides.js'
import { row as reservations } from './rows/row-51-reservations.js'
import { row as nearing } from './rows/row-52-nearing.js'
import { row as acts } from './rows/row-53-acts.js'

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
  severalKeys,
  overload,
  postgres,
  strangers,
  unread,
  bans,
  settledLogs,
  groups,
  killedConnections,
  calendars,
  policyFiles,
  overrides,
  reservations,
  nearing,
  acts,
]

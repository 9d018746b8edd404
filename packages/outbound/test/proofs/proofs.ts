import { proof as adaptive } from './adaptive/proof.js'
import { proof as clients } from './clients.js'
import { proof as evenSpread } from './even-spread.js'
import { proof as knownLimit } from './known-limit.js'
import { proof as order } from './order.js'
import { proof as overload } from './overload.js'
import { proof as peers } from './peers/proof.js'
import { proof as queue } from './queue.js'
import { proof as shutdown } from './shutdown.js'
import { proof as soak } from './soak.js'
import type { Proof } from './proof.js'
import { proof as trouble } from './trouble.js'
import { proof as unknownLimit } from './unknown-limit.js'

export const proofs: readonly Proof[] = [
  knownLimit,
  unknownLimit,
  overload,
  adaptive,
  evenSpread,
  order,
  trouble,
  peers,
  clients,
  queue,
  soak,
  shutdown,
]

import { proof as evenSpread } from './even-spread.js'
import { proof as knownLimit } from './known-limit.js'
import { proof as order } from './order.js'
import type { Proof } from './proof.js'
import { proof as trouble } from './trouble.js'
import { proof as unknownLimit } from './unknown-limit.js'

export const proofs: readonly Proof[] = [knownLimit, unknownLimit, evenSpread, order, trouble]

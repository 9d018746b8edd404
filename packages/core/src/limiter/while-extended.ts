import { clearTimer, setTimer, type TimerHandle } from '../values/clock.js'
import { parseDuration } from '../values/duration.js'
import { KIND, SluiceError } from '../values/errors.js'
import type { Decision } from './decision.js'
import type { Reservation } from './reservation.js'
import type { ReserveOptions } from './reserving-options.js'

/**
 * Calls `use` with a reservation that was made with these options, and extends it meanwhile, each time a third of its `ttl` has passed, or
 * a tenth since an extension failed. A reservation that `use` has not settled is settled afterwards: at the cost with which `use` has tried
 * that in vain (`failedCost`), otherwise at its own cost if `use` returned, and at `atEnd` if it threw. If the store fails at that, `failed`
 * gets the error, and the units are given back at the end. Resolves or rejects as `use` does.
 */
export async function whileExtended<T>(
  reservation: Reservation,
  { ttl, cost = 1, atEnd = 0 }: Pick<ReserveOptions, 'ttl' | 'cost' | 'atEnd'>,
  use: (reservation: Reservation) => T | PromiseLike<T>,
  failed: (error: unknown) => void,
): Promise<T> {
  const ttlMs = parseDuration(ttl, 'ttl')
  const [pauseMs, pauseAfterFailureMs] = [ttlMs / 3, ttlMs / 10]
  let timer: TimerHandle
  let isUseOver = false
  const extendAfter = (ms: number): void => {
    timer = setTimer(() => {
      if (reservation.isSettled) return
      extendAfter(pauseMs)
      reservation.extend(ttl).catch((error: Partial<SluiceError>) => {
        clearTimer(timer)
        if (!isUseOver && error.code !== 'RESERVATION_ENDED') extendAfter(pauseAfterFailureMs)
      })
    }, Math.ceil(ms))
    timer.unref?.()
  }
  extendAfter(pauseMs)
  let realCost = atEnd
  try {
    const result = await use(reservation)
    realCost = cost
    return result
  } finally {
    isUseOver = true
    clearTimer(timer!)
    if (!reservation.isSettled) await reservation.settle(reservation.failedCost ?? realCost).catch(failed)
  }
}

/** `using` got no reservation. Code RESERVATION_DENIED. */
export class ReservationDeniedError extends SluiceError<'RESERVATION_DENIED'> {
  static {
    this[KIND] = 'ReservationDeniedError'
  }

  /** The error about a denied call of `using`. */
  constructor(readonly decision: Decision) {
    super('RESERVATION_DENIED', `nothing was reserved for '${decision.key}': ${decision.reason}`)
  }
}

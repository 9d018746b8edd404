import type { Decision } from '../limiter/decision.js'
import type { Limiter } from '../limiter/limiter.js'
import type { MaybePromise } from '../stores/store.js'
import type { Platform } from './platform.js'

/**
 * Gives back what `decision` charged, once the response has been sent and `charge` says false. In doubt the charge
 * stays: when the caller hung up before, when `charge` fails, and when it says anything else.
 */
export function giveBackUnlessCharged<Req, Res>(
  charge: (req: Req, res: Res) => MaybePromise<boolean>,
  req: Req,
  res: Res,
  platform: Platform<Req, Res>,
  limiter: Limiter,
  decision: Decision,
): void {
  const settle = async (): Promise<void> => {
    if ((await charge(req, res)) === false) await decision.settle(0)
  }
  const report = (error: unknown): void => {
    limiter.warn('CHARGE_FAILED', `charge failed, so the request stays charged: ${String(error)}`)
  }
  platform.onFinished(req, res, () => void settle().catch(report))
}

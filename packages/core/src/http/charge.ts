import type { Decision } from '../limiter/decision.js'
import type { Limiter } from '../limiter/limiter.js'
import type { MaybePromise } from '../stores/store.js'
import type { Platform } from './platform.js'

/**
 * Gives back what `decision` charged, once the response has been sent and `shouldCharge` says false. In doubt the
 * charge stays: when the caller hung up before, when `shouldCharge` fails, and when it says anything else.
 */
export function giveBackUnlessCharged<Req, Res>(
  shouldCharge: (req: Req, res: Res) => MaybePromise<boolean>,
  req: Req,
  res: Res,
  platform: Platform<Req, Res>,
  limiter: Limiter,
  decision: Decision,
): void {
  const settle = async (): Promise<void> => {
    if ((await shouldCharge(req, res)) === false) await decision.settle(0)
  }
  const report = (error: unknown): void => {
    limiter.warn('CHARGE_FAILED', `shouldCharge failed, so the request stays charged: ${String(error)}`)
  }
  platform.onFinished(req, res, () => void settle().catch(report))
}

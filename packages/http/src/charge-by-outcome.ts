import type { Decision, Limiter } from '@sluice/core'
import type { MaybePromise } from '@sluice/core/store'

/**
 * Gives back what decisions charged if `shouldCharge` returns false. Any other result and any error keep the charges. To be
 * called when the whole response has been sent: a caller that hangs up before is charged.
 */
export async function settleByOutcome(
  limiter: Limiter,
  decisions: readonly Decision[],
  shouldCharge: () => MaybePromise<boolean>,
): Promise<void> {
  try {
    if ((await shouldCharge()) === false) await Promise.all(decisions.map((decision) => decision.settle(0)))
  } catch (error) {
    const message = `shouldCharge failed, so the request stays charged: ${String(error)}`
    limiter.warn('CHARGE_FAILED', message)
  }
}

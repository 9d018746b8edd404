import type { Decision, Limiter } from '@sluice/core'
import type { MaybePromise } from '@sluice/core/store'

/**
 * Gives back what decisions about one request charged, if the user's `shouldCharge` returns false. Any other result keeps
 * the charges, and so does an error, which becomes a warning of `limiter`. To be called once the whole response has been
 * sent (`whenSent`): a caller that hangs up before stays charged.
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

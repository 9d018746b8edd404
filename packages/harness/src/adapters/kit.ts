import type { Adapter } from './adapter.js'
import { answerCases } from './answers.js'
import { callbackCases } from './callbacks.js'
import { chargeCases } from './charge.js'
import { clientCases } from './clients.js'
import { connectionCases } from './connections.js'
import { withDenialIds } from './denial-ids.js'
import { entryCases } from './entry.js'
import { gatewayCases } from './gateways.js'
import { headerCases } from './headers.js'
import { interruptionCases } from './interruptions.js'
import { LOAD, loadCases } from './load.js'
import { underOtherPromise } from './other-promise.js'
import { permitCases } from './permits.js'
import { redisCases } from './redis.js'
import { resetTrials } from './resets.js'
import { severalCases } from './several.js'
import { type Serve, siteServer } from './site.js'
import { spoofingCases } from './spoofing.js'
import { togetherCases } from './together.js'
import { trialCases } from './trial.js'
import { unaddressedTrials } from './unaddressed.js'
import { usageCases } from './usage.js'
import { waitingCases } from './waiting.js'

/**
 * Declares every case as a test of one adapter: what is promised over HTTP is the same for all of them. A case is a
 * row and an adapter a column of the table that table.js prints.
 */
export function adapterKit<Req, Res>(plain: Adapter<Req, Res>): void {
  jest.setTimeout(120_000) // the cases assert counts and answers, which a busy machine delays
  const adapter = withDenialIds(plain)
  describe(adapter.name, () => {
    const serve: Serve<Req, Res> = siteServer(adapter)
    answerCases(adapter, serve)
    headerCases(adapter, serve)
    severalCases(adapter, serve)
    togetherCases(adapter, serve)
    permitCases(adapter, serve)
    callbackCases(adapter, serve)
    entryCases(adapter, serve)
    chargeCases(adapter, serve)
    interruptionCases(adapter, serve)
    usageCases(adapter, serve)
    waitingCases(adapter, serve)
    connectionCases(adapter, serve)
    loadCases(adapter, serve)
    trialCases(adapter, 'callers that reset their connections', resetTrials(adapter), LOAD / 20)
    trialCases(adapter, 'callers that do not hang up', unaddressedTrials(adapter), 50)
    spoofingCases(adapter, serve)
    gatewayCases(adapter, serve)
    clientCases(adapter, serve)
    redisCases(adapter, serve)
    underOtherPromise(() => {
      callbackCases(adapter, serve)
      togetherCases(adapter, serve)
      waitingCases(adapter, serve)
    })
  })
}

import { createLimiter, gcra } from '@sluice/core'
import axios from 'axios'
import { Agent, interceptors, request } from 'undici'
import { startProvider } from '@sluice/testing'
import { limitAxios, limitUndici, limitFetch } from '../../src/index.js'
import type { Outcome, Proof } from './proof.js'

/** What is refused is sent again when it may be and not before, by each client alone and by those that retry themselves. */
export const proof: Proof = { title: 'clients', timed: true, run }

const [WINDOW_MS, CALLS] = [2000, 3]
/** Timers of the other side and of this one may differ by so much. */
const EARLY_MS = 2

type Get = (url: string) => Promise<number>

async function run(): Promise<Outcome> {
  const outcomes = await Promise.all(Object.entries(await clients()).map(([name, get]) => measure(name, get)))
  const wrong = outcomes.filter(({ served, early }) => served < CALLS || early > 0).map(({ name }) => name)
  const refused = outcomes.reduce((sum, outcome) => sum + outcome.refused, 0)
  return {
    holds: wrong.length === 0,
    pass: wrong.length === 0,
    figure:
      `${outcomes.map(({ name }) => name).join(', ')}: ${CALLS} calls each to a provider of 1 per 2 s, ${refused} refused in all; ` +
      `${wrong.length === 0 ? 'every retry passed, none came early' : `not as it should be: ${wrong.join(', ')}`}`,
  }
}

/** Each client has a provider of its own, so that they do not share its limit. */
async function measure(name: string, get: Get) {
  const provider = await startProvider({ limit: 1, windowMs: WINDOW_MS })
  let served = 0
  for (let i = 0; i < CALLS; i++) if ((await get(provider.origin).catch(() => 0)) === 200) served++
  provider.close()
  const { calls } = provider
  const early = calls.slice(1).filter(({ at }, i) => at < calls[i]!.at + calls[i]!.retryAfterMs - EARLY_MS)
  return { name, served, refused: calls.filter(({ accepted }) => !accepted).length, early: early.length }
}

async function clients(): Promise<Readonly<Record<string, Get>>> {
  const [{ default: axiosRetry }, { default: ky }] = await Promise.all([import('axios-retry'), import('ky')])
  const options = () => ({ limiter: createLimiter({ policies: [gcra({ limit: 1000, window: '1s' })] }) })
  const adapter = (retries: number) => limitAxios(axios.getAdapter('http'), { ...options(), retries })
  const throughUndici = (dispatcher: Agent | ReturnType<Agent['compose']>) => async (url: string) => {
    const { statusCode, body } = await request(url, { dispatcher })
    await body.dump()
    return statusCode
  }
  const fetchOf = (retries: number) => limitFetch(fetch, { ...options(), retries })
  const patient = axios.create({ adapter: adapter(0) })
  axiosRetry(patient, { retryCondition: ({ response }) => response?.status === 429 })
  const [alone, beneathKy] = [fetchOf(2), fetchOf(0)]
  const limited = axios.create({ adapter: adapter(2) })
  return {
    limitFetch: async (url) => (await alone(url)).status,
    'ky over limitFetch': async (url) => (await ky(url, { fetch: beneathKy })).status,
    limitAxios: async (url) => (await limited.get(url)).status,
    'axios-retry over limitAxios': async (url) => (await patient.get(url)).status,
    limitUndici: throughUndici(new Agent().compose(limitUndici(options()))),
    "undici's retry over limitUndici": throughUndici(
      new Agent().compose(limitUndici({ ...options(), retries: 0 }), interceptors.retry()),
    ),
  }
}

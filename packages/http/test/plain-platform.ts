import { createGuard, type Denied, type RequestLimitOptions, type Platform } from '../src/index.js'

/** A request without a framework around it. */
export interface PlainRequest {
  readonly address?: string
  readonly socketAddress?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly trustsAll?: boolean
}

export class PlainResponse {
  status = 200
  headersSent = false
  body: string | undefined
  readonly headers: Record<string, string> = {}
  readonly onFinished: (() => void)[] = []
}

/** The least that an adapter has to supply. */
export const plain: Platform<PlainRequest, PlainResponse> = {
  identity: (req) => req,
  address: (req) => req.address,
  socketAddress: (req) => req.socketAddress,
  method: () => 'GET',
  url: () => '/',
  header: (req, name) => req.headers?.[name],
  trustsAll: (req) => req.trustsAll ?? false,
  headersSent: (res) => res.headersSent,
  setHeader: (res, name, value) => void (res.headers[name] = value),
  setStatus: (res, status) => void (res.status = status),
  send: (_req, res, _problem, text) => (res.body = text),
  onFinished: (_req, res, listener) => void res.onFinished.push(listener),
  proxySetting: 'trust(1)',
  handlerFrame: /\bhandleRequest\b/,
}

export type PlainOptions = RequestLimitOptions<PlainRequest, PlainResponse>

/** Sends one request through the guards and returns the response, as far as the first denial. */
export async function pass(
  guards: readonly PlainGuard[],
  req: PlainRequest = FROM_HOME,
): Promise<PlainResponse> {
  const res = new PlainResponse()
  const request = { ...req }
  for (const guard of guards) if (await guard(request, res)) break
  return res
}

export function guardOf(options: PlainOptions): PlainGuard {
  return createGuard(options, plain)
}

export const FROM_HOME: PlainRequest = { address: '192.0.2.1', socketAddress: '192.0.2.1' }

type PlainGuard = (req: PlainRequest, res: PlainResponse) => Denied | undefined | Promise<Denied | undefined>

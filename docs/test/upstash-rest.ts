import type { Redis } from 'ioredis'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

/*
 * Redis over HTTP, as the client of @upstash/redis asks for it: the body of a POST is a command, or a list of them at /pipeline,
 * and texts in answers are in base64. The provider's own server is reached over the network alone.
 */

type Command = readonly (string | number)[]

/** Serves the commands of a Redis. Returns the URL, and how it is ended. */
export async function serveUpstash(redis: Redis): Promise<{ readonly url: string; close(): void }> {
  const server = createServer((request, response) => {
    void (async () => {
      const body = await json(request)
      const isList = request.url === '/pipeline'
      const answers = await Promise.all(
        ((isList ? body : [body]) as readonly Command[]).map((each) => answerTo(redis, each)),
      )
      const isFailure = !isList && 'error' in answers[0]!
      response.writeHead(isFailure ? 400 : 200).end(JSON.stringify(isList ? answers : answers[0]))
    })()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = (): void => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}

/** The result of a command. The first line of a script has a flag that only that provider knows, and is left out. */
async function answerTo(redis: Redis, [name = '', first = '', ...rest]: Command): Promise<object> {
  const script = String(first).replace(/^#!.*\n/, '')
  try {
    return { result: encoded(await redis.call(String(name), script, ...rest)) }
  } catch (error) {
    return { error: (error as Error).message }
  }
}

function encoded(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(encoded)
  return typeof value === 'string' && value !== 'OK' ? Buffer.from(value).toString('base64') : value
}

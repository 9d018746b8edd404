import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import type { Response } from 'express'
import type { FastifyReply } from 'fastify'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { kitAdapter } from './kit-app.js'

const onExpress = kitAdapter('Nest on Express', {
  create(proxyTrust) {
    const adapter = new ExpressAdapter()
    if (proxyTrust !== 'none') adapter.set('trust proxy', proxyTrust === 'all' ? true : proxyTrust)
    return adapter
  },
  async send(res: Response, status, body, headers = {}) {
    res.status(status).set(headers).type('text')
    if (typeof body === 'string') res.send(body)
    else await pipeline(Readable.from(body), res)
  },
})

const onFastify = kitAdapter('Nest on Fastify', {
  create(proxyTrust) {
    // A number that Fastify takes trusts none.
    const counted = (_address: string, hop: number) => hop < Number(proxyTrust)
    const listed = proxyTrust === 'none' ? false : proxyTrust === 'all' ? true : proxyTrust
    const trustProxy = typeof listed === 'number' ? counted : (listed as boolean | string[])
    const adapter = new FastifyAdapter({ trustProxy })
    // Guards run when the body is there, so Fastify has to take bodies of no type.
    adapter
      .getInstance()
      .addContentTypeParser('*', { parseAs: 'string' }, (_req, body, done) => done(null, body))
    return adapter
  },
  async send(reply: FastifyReply, status, body, headers = {}) {
    await reply
      .code(status)
      .headers(headers)
      .type('text/plain')
      .send(typeof body === 'string' ? body : Readable.from(body))
  },
})

export const expressAdapter = { ...onExpress, lacks: { 'HTTP/2': 'Express has no HTTP/2' } }

export const fastifyAdapter = onFastify

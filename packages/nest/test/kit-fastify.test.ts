import { FastifyAdapter } from '@nestjs/platform-fastify'
import type { FastifyReply } from 'fastify'
import { Readable } from 'node:stream'
import { adapterKit } from '@sluice/harness/adapters'
import { kitAdapter } from './kit-app.js'

const onFastify = kitAdapter('Nest on Fastify', {
  create(proxyTrust) {
    const trustProxy = proxyTrust === 'none' ? false : proxyTrust === 'all' ? true : proxyTrust
    const adapter = new FastifyAdapter({ trustProxy: trustProxy as boolean | string[] })
    // Guards run when the body is there, so Fastify has to take bodies of no type.
    adapter
      .getInstance()
      .addContentTypeParser('*', { parseAs: 'string' }, (_req, body, done) => done(null, body))
    return adapter
  },
  async send(reply: FastifyReply, status, body) {
    await reply
      .code(status)
      .type('text/plain')
      .send(typeof body === 'string' ? body : Readable.from(body))
  },
})

adapterKit({
  ...onFastify,
  lacks: { 'trusting a number of proxies': 'Fastify takes a number and then trusts none' },
})

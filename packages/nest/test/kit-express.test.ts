import { ExpressAdapter } from '@nestjs/platform-express'
import type { Response } from 'express'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { adapterKit } from '@sluice/harness/adapters'
import { kitAdapter } from './kit-app.js'

const onExpress = kitAdapter('Nest on Express', {
  create(proxyTrust) {
    const adapter = new ExpressAdapter()
    if (proxyTrust !== 'none') adapter.set('trust proxy', proxyTrust === 'all' ? true : proxyTrust)
    return adapter
  },
  async send(res: Response, status, body) {
    res.status(status).type('text')
    if (typeof body === 'string') res.send(body)
    else await pipeline(Readable.from(body), res)
  },
})

adapterKit({ ...onExpress, lacks: { 'HTTP/2': 'Express has no HTTP/2' } })

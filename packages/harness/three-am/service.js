// One process of the fleet of run.js: a service whose callers are counted by their API key, as docs/http.md and docs/cli.md say.
import { redisStore } from '@sluice/core/redis'
import { rateLimit } from '@sluice/express'
import { keepDenials } from '@sluice/metrics'
import { limitsFrom } from '@sluice/policies'
import express from 'express'
import { readFileSync } from 'node:fs'

const [file = '', url = ''] = process.argv.slice(2)
const store = redisStore(url)
const denials = keepDenials({ secret: process.env['SLUICE_SECRET'] ?? '', fleet: store })
const limits = limitsFrom(readFileSync(file, 'utf8'))
const app = express()
// @ts-ignore -- the option takes what the file has
app.use(rateLimit({ limits, store, deadline: '5s', denialId: denials.keep }))
app.get('/', (_, res) => void res.send('ok'))
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.(typeof address === 'object' && address ? address.port : 0)
})
process.on('disconnect', () => process.exit())

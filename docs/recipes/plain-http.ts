import { limitedListener } from '@sluice/http'
import { createServer } from 'node:http'

/* Node's own server behind a limit, by client address. The same listener serves node:http2. */

export const server = createServer(
  limitedListener((_req, res) => res.end('hello\n'), { name: 'api', limit: 10, window: '1m' }),
)

import { createServer } from 'node:net'

it('passes: a file that leaves a server open', () => {
  const server = createServer().listen(0, '127.0.0.1')
  setTimeout(() => server.close(), 7000).unref() // after the file has failed, so that its worker can end
})

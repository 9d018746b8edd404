import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { hasHungUp, isTcp } from '../src/index.js'

describe('a request without an address', () => {
  it.each<[string, Parameters<typeof hasHungUp>[0]]>([
    ['has a socket of its own making', { socket: {} }],
    ['has no socket', {}],
    ['has the socket of serverless-http', { socket: { address: () => ({ port: 443 }) } as object }],
    ['has been read to its end', { socket: {}, destroyed: true, readableEnded: true }],
    ['carries a stream of the application', { socket: {}, stream: { destroyed: true } }],
    ['is handed to a server on TCP', { socket: { server: { address: () => ({ port: 80 }) } } as object }],
    ['is accepted on a Unix socket', { socket: { _server: { address: () => '/run/app.sock' } } as object }],
    ['is accepted by a server that is closed', { socket: { _server: { address: () => null } } as object }],
  ])('has not hung up if it %s', (_, request) => {
    expect(hasHungUp(request)).toBe(false)
  })

  it.each<[string, Parameters<typeof hasHungUp>[0]]>([
    ['its socket is destroyed', { socket: { destroyed: true } }],
    ['it was broken off', { socket: {}, destroyed: true, readableEnded: false }],
    ['its socket has an address of its own', { socket: { localAddress: '192.0.2.1' } }],
    ['a server on TCP accepted it', { socket: { _server: { address: () => ({ port: 80 }) } } as object }],
    [
      'a server on TCP accepted what is below TLS',
      { socket: { _parent: { _server: { address: () => ({ port: 443 }) } } } as object },
    ],
    ['its HTTP/2 stream is closed', { socket: null, stream: { rstCode: 8, destroyed: true } }],
    ['its HTTP/2 session is gone', { socket: {}, stream: { rstCode: 0, session: undefined } }],
    ['its HTTP/2 session is closed', { socket: {}, stream: { rstCode: 0, session: { destroyed: true } } }],
  ])('has hung up if %s', (_, request) => {
    expect(hasHungUp(request)).toBe(true)
  })
})

describe('a socket', () => {
  it('is known to be of TCP by the server that accepted it', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    const [socket] = (await once(server, 'connection')) as [Socket]
    // As on systems that forget the own address of a connection that was reset.
    const forgotten = Object.create(socket, { localAddress: { value: undefined } }) as Socket
    expect([isTcp(socket), isTcp(forgotten)]).toEqual([true, true])
    client.destroy()
    socket.destroy()
    server.close()
    await once(server, 'close')
  })
})

import { closeUnread, type ClientConnection } from '../src/index.js'

const close = jest.fn()
beforeEach(() => close.mockClear())

/** A client of socket.io with these packets in its queue. */
function client(bytes: number, ...packets: readonly (string | undefined)[]) {
  const writeBuffer = packets.map((data) => (data === undefined ? {} : { data }))
  const transport = { socket: { bufferedAmount: bytes, close } }
  return { conn: { writeBuffer, transport, close: jest.fn() } }
}

describe('a connection', () => {
  it.each<[string, ClientConnection]>([
    ['of ws', { bufferedAmount: 11, close }],
    ['of Bun', { getBufferedAmount: () => 11, close }],
    ['of socket.io', client(11)],
    ['of socket.io, with packets in its queue', client(4, '1234', undefined, '567')],
  ])('%s is closed with 1008 when more bytes wait than may', (_, connection) => {
    expect(closeUnread(connection, 11)).toBe(false)
    expect(close).not.toHaveBeenCalled()
    expect(closeUnread(connection, 10)).toBe(true)
    expect(close).toHaveBeenCalledWith(1008, 'Too Many Requests')
  })

  it('of socket.io does not wait for its client before it closes', () => {
    const { conn } = client(11)
    closeUnread({ conn }, 10)
    expect(conn.close).toHaveBeenCalledWith(true)
  })

  it('of socket.io over HTTP has no socket', () => {
    const conn = { writeBuffer: [{ data: 'abc' }], transport: {}, close: jest.fn() }
    expect([closeUnread({ conn }, 3), closeUnread({ conn }, 2)]).toEqual([false, true])
    expect(conn.close).toHaveBeenCalledTimes(1)
  })

  it('that shows no number of bytes is left to its runtime', () => {
    expect(closeUnread({ close }, 0)).toBe(false)
  })
})

import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { onResponseSent } from '../src/index.js'

describe('onResponseSent', () => {
  it('adds one listener to a response, even for many operations of a request', () => {
    const request = new IncomingMessage(new Socket())
    const response = new ServerResponse(request)
    const called: number[] = []
    for (let i = 0; i < 20; i++) onResponseSent(request, response, () => void called.push(i))
    expect(response.listenerCount('finish')).toBe(1)
    response.emit('finish')
    expect(called).toEqual(Array.from({ length: 20 }, (_, i) => i))
  })

  it('does not take a stream for that of HTTP/2 that the application put on the request', () => {
    const request = Object.assign(new IncomingMessage(new Socket()), { stream: new PassThrough() })
    const response = new ServerResponse(request)
    const listener = jest.fn()
    onResponseSent(request, response, listener)
    response.emit('finish')
    expect(listener).toHaveBeenCalledTimes(1)
  })

  it('calls no listener if the caller has hung up', () => {
    const request = new IncomingMessage(new Socket())
    const response = new ServerResponse(request)
    const listener = jest.fn()
    onResponseSent(request, response, listener)
    request.socket.destroy()
    response.emit('finish')
    expect(listener).not.toHaveBeenCalled()
  })
})

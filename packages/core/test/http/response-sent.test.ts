import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { onResponseSent } from '../../src/http/index.js'

describe('onResponseSent', () => {
  it('listens to a response once, however many operations of a request wait for its end', () => {
    const request = new IncomingMessage(new Socket())
    const response = new ServerResponse(request)
    const called: number[] = []
    for (let i = 0; i < 20; i++) onResponseSent(request, response, () => void called.push(i))
    expect(response.listenerCount('finish')).toBe(1)
    response.emit('finish')
    expect(called).toEqual(Array.from({ length: 20 }, (_, i) => i))
  })

  it('calls nobody where the caller has hung up', () => {
    const request = new IncomingMessage(new Socket())
    const response = new ServerResponse(request)
    const listener = jest.fn()
    onResponseSent(request, response, listener)
    request.socket.destroy()
    response.emit('finish')
    expect(listener).not.toHaveBeenCalled()
  })
})

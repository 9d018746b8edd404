import { getEventListeners } from 'node:events'
import { onAbort } from '../../src/values/abort.js'

describe('a listener of a signal', () => {
  it('is called when the signal aborts, unless it was removed', () => {
    const controller = new AbortController()
    const called: string[] = []
    onAbort(controller.signal, () => called.push('kept'))
    onAbort(controller.signal, () => called.push('removed'))()
    controller.abort()
    expect(called).toEqual(['kept'])
  })

  it('that is removed twice leaves those that came in between', () => {
    const controller = new AbortController()
    const called: string[] = []
    const remove = onAbort(controller.signal, () => called.push('first'))
    remove()
    onAbort(controller.signal, () => called.push('second'))
    remove()
    controller.abort()
    expect(called).toEqual(['second'])
  })

  it('is called, though later, where the signal has aborted before, unless it was removed', async () => {
    const called: string[] = []
    const signal = AbortSignal.abort()
    onAbort(signal, () => called.push('kept'))
    onAbort(signal, () => called.push('removed'))()
    expect(called).toEqual([])
    await Promise.resolve()
    expect(called).toEqual(['kept'])
  })

  it('leaves nothing on the signal when it is removed', () => {
    const { signal } = new AbortController()
    const removers = [1, 2].map(() => onAbort(signal, () => {}))
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    for (const remove of removers) remove()
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  })
})

import { consumeAll, createLimiter, fixedWindow } from '@sluice/core'
import { annotateSpans } from '../src/index.js'

describe('annotateSpans', () => {
  it('writes of several keys the one that denies, in any order', async () => {
    const policies = [fixedWindow({ limit: 1, window: '1h' })]
    const limiters = ['narrow', 'wide'].map((name) => createLimiter({ name, policies }))
    const written: object[] = []
    const span = { setAttributes: (attributes: object) => void written.push(attributes) }
    for (const limiter of limiters) annotateSpans(limiter, { trace: { getActiveSpan: () => span } })
    await consumeAll(limiters.map((limiter, i) => ({ limiter, key: 'k', cost: 2 - i })))
    expect(written).toEqual([expect.objectContaining({ 'sluice.limiter': 'narrow' })])
    await Promise.all(limiters.map((limiter) => limiter.close()))
  })

  it('writes each decision to the active span, without its key', async () => {
    const limiter = createLimiter({ name: 'api', policies: [fixedWindow({ limit: 1, window: '1h' })] })
    const written: object[] = []
    const active: { span?: { setAttributes(attributes: object): void } } = {}
    const stop = annotateSpans(limiter, { trace: { getActiveSpan: () => active.span } })
    await limiter.consume('user:42')
    active.span = { setAttributes: (attributes) => void written.push(attributes) }
    await limiter.consume('user:42')
    stop()
    await limiter.consume('user:42')
    expect(written).toEqual([
      {
        'sluice.limiter': 'api',
        'sluice.policy': '1-per-1h',
        'sluice.result': 'denied',
        'sluice.reason': 'limit',
        'sluice.decided_by': 'memory',
        'sluice.remaining': 0,
        'sluice.store_ms': 0,
      },
    ])
    await limiter.close()
    const trace = { getActiveSpan: () => active.span }
    expect(() => annotateSpans(limiter, { trace })).toThrow(expect.objectContaining({ code: 'CLOSED' }))
    expect(() => annotateSpans(limiter, { trace: {} as never })).toThrow(/trace must be/)
    expect(() => annotateSpans({} as never, { trace })).toThrow(/takes a limiter/)
  })
})

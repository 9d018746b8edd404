import { KeyQueues } from '../../src/key-queue.js'

describe('the queues of keys that no call waits for', () => {
  it('are kept while the other side has asked their keys to pause: the newest 5,000 to 10,000', () => {
    const queues = new KeyQueues(undefined, [])
    const made = Array.from({ length: 30_000 }, (_, i) => {
      const queue = queues.get(`https://${i}.example`)
      queue.hold(`https://${i}.example`, 3_600_000, performance.now(), undefined)
      return queue
    })
    // From the newest on: to ask for one that is forgotten makes another, which is in nobody's way.
    const kept = made.map((queue, i) => queues.get(`https://${i}.example`) === queue)
    expect(kept.slice(-5000).every(Boolean)).toBe(true)
    expect(kept.filter(Boolean).length).toBeLessThanOrEqual(10_000)
  })

  it('are forgotten without a pause, beyond 100', () => {
    const queues = new KeyQueues(undefined, [])
    const first = queues.get('first')
    for (let i = 0; i < 100; i++) queues.get(`${i}`)
    expect(queues.get('first')).not.toBe(first)
  })
})

import { randomFrom } from '../../../packages/harness/src/figures/random.js'
import { LaterEvents } from '../later-events.js'

describe('later events', () => {
  it('are taken by time, and those of one instant in the order in which they were added', () => {
    const random = randomFrom(1)
    const later = new LaterEvents<{ at: number; added: number }>()
    const waiting: { at: number; added: number }[] = []
    for (let added = 0; added < 3000; added++) {
      if (random() < 0.4 && waiting.length > 0) {
        waiting.sort((one, other) => one.at - other.at)
        expect(later.nextAt).toBe(waiting[0]!.at)
        expect(later.take()).toEqual(waiting.shift())
      }
      const event = { at: Math.floor(random() * 50), added }
      later.add(event)
      waiting.push(event)
    }
  })

  it('come to an end', () => {
    const later = new LaterEvents<{ at: number }>()
    later.add({ at: 1 })
    expect(later.take()).toEqual({ at: 1 })
    expect(later.nextAt).toBe(Infinity)
  })
})

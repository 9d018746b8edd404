import { WaitingCounts } from '../src/sources/waiting-counts.js'

/** The labels of the adaptive limits after these keys have found one. */
function labelsOf(keys: readonly string[]): readonly string[] {
  const counts = new WaitingCounts('queue', 'q')
  for (const key of keys) counts.adapted({ key, limit: 1 })
  const labels: string[] = []
  counts.read('adaptiveLimit', (_, { key }) => labels.push(key!))
  return labels
}

describe('the keys of adaptive limits', () => {
  it('are labels up to 100 of them, and the others share one', () => {
    const labels = labelsOf(Array.from({ length: 5000 }, (_, i) => `https://${i}.example`))
    expect(labels).toHaveLength(101)
    expect(labels.at(-1)).toBe('other')
  })

  it('that are long are labels as stores keep them, by their digest', () => {
    const labels = labelsOf([`${'a'.repeat(8000)}`, 'https://a.example'])
    expect(labels).toEqual([expect.stringMatching(/^sha256:.{20,64}$/), 'https://a.example'])
  })
})

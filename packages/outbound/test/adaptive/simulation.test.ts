import { scenes } from './scenes.js'

/** One of the twenty seeds of `npm run bench -- adaptive`. */
it.each(scenes.map((scene) => [scene.title, scene] as const))(
  '%s: within the bars, and better than AIMD',
  (_, { adaptive, aimd, bar }) => {
    const span = { forMs: 600_000, halvesAt: 300_000 }
    const [ours, plain] = [adaptive(1, span)[0]!, aimd(1, span)[0]!]
    expect(100 * ours.used).toBeGreaterThanOrEqual(bar.used)
    expect(100 * ours.refused).toBeLessThanOrEqual(bar.refused)
    expect(ours.refused).toBeLessThan(plain.refused)
    expect(ours.used).toBeGreaterThan(plain.used - 0.02)
  },
)

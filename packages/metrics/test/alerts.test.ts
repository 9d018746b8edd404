import { createLimiter, createSemaphore, fixedWindow, gcra, type Limiter, memoryStore } from '@sluice/core'
import { expectWarnings } from '@sluice/harness/warnings'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { observe } from '../src/index.js'
import { LaterStore } from './later-store.js'
import { type Exporter, type Labels, Recorded, type Way, WAYS } from './recorded.js'

/*
 * The published alerts on what real exporters wrote: of two services, two processes and a rollout, by each way in which metrics
 * reach Prometheus.
 */

/** Fifteen minutes. */
const SCRAPES = 30

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A process of a service with a limiter named 'default' over a store elsewhere. */
class Pod {
  readonly store = new LaterStore(() => 0)
  readonly exporter: Exporter
  readonly labels: Labels
  readonly #limiter: Limiter

  constructor(way: Way, service: string, name: string) {
    this.exporter = way.open()
    this.labels = way.labelsOf(service, name)
    const policies = [gcra({ limit: 1_000_000, window: '1h' })]
    this.#limiter = createLimiter({ name: 'default', policies, store: this.store })
    observe(this.#limiter, this.exporter.options)
    closing.push(
      () => this.#limiter.close(),
      () => this.exporter.close(),
    )
  }

  /** So many calls, and as many more that no limit admits. */
  async call(count: number, denied = 0): Promise<void> {
    for (let i = 0; i < count; i++) await this.#limiter.consume('k')
    for (let i = 0; i < denied; i++) await this.#limiter.consume('k', { cost: 2_000_000 })
  }
}

const isThere = spawnSync('promtool', ['--version']).error === undefined
const withPromtool = isThere || process.env['CI'] ? describe : describe.skip

withPromtool.each(Object.entries(WAYS))('the alerts by way of %s', (_, way) => {
  const rules = `alerts${way.suffix}.yml`
  const namesOf = (firing: readonly Labels[]) => firing.map(({ alertname = '' }) => alertname).toSorted()
  /** The labels of a service that an alert names, as its way writes them. */
  const serviceOf = ({ namespace, job, exported_job: behind }: Labels) =>
    behind ?? [namespace, job].filter(Boolean).join('/')

  it('fire for a small service beside a busy one whose limiter has the same name', async () => {
    const busy = new Pod(way, 'shop/web', 'a')
    const small = new Pod(way, 'billing/api', 'b')
    small.store.isFailing = true
    const recorded = new Recorded()
    for (let i = 0; i < SCRAPES; i++) {
      await busy.call(200)
      await small.call(1, 2)
      await recorded.scrape([busy, small])
    }
    const firing = recorded.firing(rules)
    expect(namesOf(firing)).toEqual(['SluiceDecidedWithoutStore', 'SluiceDeniesMost', 'SluiceStoreDown'])
    expect(new Set(firing.map(serviceOf))).toEqual(new Set(['billing/api']))
  })

  it('fire for one of two processes whose store decides nothing', async () => {
    const well = new Pod(way, 'shop/web', 'a')
    const cutOff = new Pod(way, 'shop/web', 'b')
    const recorded = new Recorded()
    for (let i = 0; i < SCRAPES; i++) {
      cutOff.store.isFailing = i > 5
      await well.call(60)
      await cutOff.call(2)
      await recorded.scrape([well, cutOff])
    }
    expect(namesOf(recorded.firing(rules))).toEqual(['SluiceStoreDown'])
  })

  it('do not fire in a rollout, but for the new processes if their store decides nothing', async () => {
    for (const isFailing of [false, true]) {
      const before = ['a', 'b'].map((name) => new Pod(way, 'shop/web', name))
      const after = ['c', 'd'].map((name) => new Pod(way, 'shop/web', name))
      for (const { store } of after) store.isFailing = isFailing
      const recorded = new Recorded()
      for (let i = 0; i < SCRAPES; i++) {
        const pods = i < 10 ? before : i < 12 ? [before[1]!, after[0]!] : after
        for (const pod of pods) await pod.call(20)
        await recorded.scrape(pods)
      }
      const expected = isFailing ? ['SluiceDecidedWithoutStore', 'SluiceStoreDown'] : []
      expect(namesOf(recorded.firing(rules))).toEqual(expected)
    }
  })

  it('fire for a limit that denies most, a full store, waits and a wrong set-up', async () => {
    const { recorded } = await everything(way)
    expect(namesOf(recorded.firing(rules))).toEqual([
      'SluiceDecidedWithoutStore',
      'SluiceDeniesMost',
      'SluiceKeysEvicted',
      'SluiceMisconfigured',
      'SluiceStoreDown',
    ])
  })

  it('and the dashboard ask for what the exporter writes, and keep the labels of services', async () => {
    const { recorded } = await everything(way)
    const dashboard = JSON.parse(read(`grafana/sluice${way.suffix}.json`)) as {
      panels: { targets: { expr: string }[] }[]
    }
    const ofPanels = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
    const ofAlerts = [...read(rules).matchAll(/expr: (.+?) (?:==|>) [\d.]+$/gm)].map(([, expr = '']) => expr)
    const asked = [...ofPanels, ...ofAlerts].map((expression) =>
      expression.replaceAll('$__rate_interval', '5m').replaceAll('$__range', '10m'),
    )
    expect(ofPanels.length).toBeGreaterThan(15)
    expect(ofAlerts).toHaveLength(8)
    expect(recorded.silent(rules, asked)).toEqual([])
    const sums = [...ofPanels, ...ofAlerts].flatMap((expression) => [
      ...expression.matchAll(/ by \(([^)]*)\)/g),
    ])
    for (const [, by] of sums) expect(by).toMatch(/^cluster, namespace, job, /)
  })
})

const read = (path: string): string => readFileSync(resolve(__dirname, '..', path), 'utf8')

/** A process in which all that is observed happens. */
async function everything(way: Way): Promise<{ readonly recorded: Recorded }> {
  const pod = new Pod(way, 'shop/web', 'a')
  const full = memoryStore({ clock: () => 0, maxKeys: 2 })
  const policies = [fixedWindow({ limit: 1, window: '1h' })]
  const limiter = createLimiter({ name: 'flooded', policies, store: full })
  const shadow = createLimiter({ name: 'shadow', policies, enforce: false })
  const semaphore = createSemaphore({ name: 'db', limit: 1 })
  for (const each of [limiter, shadow]) observe(each, { ...pod.exporter.options, tag: () => 'all' })
  observe(semaphore, pod.exporter.options)
  observe(full, { ...pod.exporter.options, name: 'full' })
  closing.push(
    () => limiter.close(),
    () => shadow.close(),
    () => semaphore.close(),
    () => full.close(),
  )
  expectWarnings(['LIKELY', 'STORE_FULL'])
  limiter.warn('LIKELY', 'a mistake')
  pod.store.isFailing = true
  const recorded = new Recorded()
  for (let i = 0; i < SCRAPES; i++) {
    if (i === 2) await pod.call(2)
    pod.store.isFailing = i > 1
    await pod.call(i < 2 ? 2 : 1)
    for (let j = 0; j < 4; j++) await limiter.consume(`new ${i}:${j}`)
    for (let j = 0; j < 9; j++) await limiter.consume(`new ${i}:3`)
    await shadow.consume('k')
    await (await semaphore.acquire()).release()
    await recorded.scrape([pod])
  }
  return { recorded }
}

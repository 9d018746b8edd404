import express from 'express'
import { once } from 'node:events'
import { mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gcra, memoryStore } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { expectWarnings } from '@sluice/harness/warnings'
import { limiterFrom, limitsFrom, type PolicyFile, policiesOf, readPolicies } from '../src/index.js'
import { type WatchedPolicies, watchPolicies, type WatchPoliciesOptions } from '../src/node.js'

/** A file with one sliding log of this limit. */
const fileOf = (limit: number, more: object = {}, file: object = {}): string =>
  JSON.stringify({
    limiters: { api: { policies: [{ algorithm: 'slidingLog', limit, window: '1h' }], ...more } },
    ...file,
  })

let open: WatchedPolicies[] = []
afterEach(() => {
  for (const watched of open) watched.close()
  open = []
  jest.useRealTimers()
})

/** A watch of what `source.text` is, with each beat made by `beat`. */
async function watching(text: string, options: WatchPoliciesOptions = {}) {
  jest.useFakeTimers()
  const source: { text: string | Error } = { text }
  const errors: string[] = []
  const changes: string[] = []
  const watched = watchPolicies(
    async () => {
      if (source.text instanceof Error) throw source.text
      return source.text
    },
    {
      onError: ({ message }) => errors.push(message),
      onChange: (digest) => changes.push(digest),
      ...options,
    },
  )
  open.push(watched)
  await watched.ready()
  const beat = async (next?: string | Error) => {
    if (next !== undefined) source.text = next
    await jest.advanceTimersByTimeAsync(1000)
  }
  const limit = () => policiesOf(watched, 'api')![0]!.limit
  return { watched, beat, limit, errors, changes }
}

describe('a watched file', () => {
  it('is in force with its first read, and another once two reads agree', async () => {
    const { beat, limit, changes, watched } = await watching(fileOf(5))
    const first = watched.digest
    expect(limit()).toBe(5)
    await beat(fileOf(50))
    expect(limit()).toBe(5)
    await beat()
    expect(limit()).toBe(50)
    expect(changes).toEqual([watched.digest])
    expect(watched.digest).not.toBe(first)
  })

  it('that differs at each read, as while it is written, is not in force, although each text is valid', async () => {
    const { beat, limit } = await watching(fileOf(2500))
    for (const limits of [1500, 1050, 1005]) await beat(fileOf(limits))
    expect(limit()).toBe(2500)
    await beat(fileOf(1000))
    await beat()
    expect(limit()).toBe(1000)
  })

  it('is read a beat after a read has ended, so that a slow read and the next are no two that agree', async () => {
    jest.useFakeTimers()
    const reads: (readonly [number, number])[] = []
    const slow = async () => {
      const began = Date.now()
      await new Promise((resolve) => setTimeout(resolve, 900))
      reads.push([began, Date.now()])
      return fileOf(5)
    }
    open.push(watchPolicies(slow))
    await jest.advanceTimersByTimeAsync(6000)
    expect(reads.slice(1).map(([began], i) => began - reads[i]![1])).toEqual([1000, 1000])
  })

  it('does not count a read before a failed one as the same twice', async () => {
    const { beat, limit } = await watching(fileOf(5))
    await beat(fileOf(6))
    await beat(new Error('gone'))
    await beat(fileOf(6))
    expect(limit()).toBe(5)
    await beat()
    expect(limit()).toBe(6)
  })

  it.each([
    ['half of it', fileOf(6).slice(0, 40), /expected/],
    ['nothing', '', /expected a value/],
    ['an unknown name', '{ "limits": {} }', /limits/],
    ['other shapes', fileOf(6, { policies: [{ algorithm: 'gcra', limit: 6, window: '1h' }] }), /"reset"/],
    ['another by', fileOf(6, { by: 'header:x-team' }), /by was none and becomes 'header:x-team'.*"reset"/],
    ['by in place of the key of the application', fileOf(6, { by: 'ip' }), /by was none and becomes 'ip'/],
    ['more than 1 MB', `${fileOf(6)}${' '.repeat(2 ** 20)}`, /1 MB/],
  ])('that has %s is refused, reported once, and the last good one stays', async (_, text, message) => {
    const { beat, limit, errors, watched } = await watching(fileOf(5))
    for (let i = 0; i < 4; i++) await beat(text)
    expect(limit()).toBe(5)
    expect(errors).toEqual([expect.stringMatching(message)])
    expect(watched.errors).toBe(1)
    expect(watched.error?.message).toMatch(message)
    expect(watched.ageMs).toBe(4000)
    await beat(fileOf(5))
    expect([watched.error, watched.ageMs]).toEqual([undefined, 0])
    await beat(text)
    await beat()
    expect(watched.errors).toBe(2)
    await beat(fileOf(6))
    expect([watched.error, limit()]).toEqual([undefined, 5]) // the next read decides
    await beat(text)
    await beat()
    expect([watched.errors, watched.error?.message]).toEqual([2, expect.stringMatching(message)])
  })

  it('may begin anew where it names the limiter in reset', async () => {
    const { beat, watched } = await watching(
      fileOf(5, { plans: { pro: [{ algorithm: 'gcra', limit: 9, window: '1h' }] } }),
    )
    const changed = {
      by: 'header:x-team',
      plans: { pro: [{ algorithm: 'slidingLog', limit: 9, window: '1h' }] },
    }
    await beat(fileOf(5, changed))
    await beat()
    expect(watched.error?.message).toMatch(/plan 'pro'.*header:x-team/)
    await beat(fileOf(5, changed, { reset: ['api'] }))
    await beat()
    expect(watched.current.limiters[0]!.by).toBe('header:x-team')
  })

  it.each([
    ['is added', {}, { plans: { pro: [{ algorithm: 'gcra', limit: 9, window: '1h' }] } }],
    ['goes', { plans: { pro: [{ algorithm: 'gcra', limit: 9, window: '1h' }] } }, {}],
  ])('is refused where a plan of other shapes %s, whose callers would begin anew', async (_, was, is) => {
    const { beat, watched } = await watching(fileOf(5, was))
    await beat(fileOf(5, is))
    await beat()
    expect(watched.error?.message).toMatch(/shapes .* of the plan 'pro' become .*"reset"/)
  })

  it('that cannot act in an application does not come into force where limits are made of it', async () => {
    const { beat, limit, watched } = await watching(fileOf(5))
    limitsFrom(watched)
    await beat(fileOf(6, { where: 'status=401' }))
    await beat()
    expect(limit()).toBe(5)
    expect(watched.error?.message).toMatch(/shouldCharge/)
    await expect(async () => limitsFrom(fileOf(6, { where: 'status=401' }))).rejects.toThrow(/shouldCharge/)
  })

  it('is asked the same by limits that are made again and again, and refused where one of them lacks a field', async () => {
    const { beat, limit, watched } = await watching(fileOf(5))
    let asked = 0
    const both = { team: () => 'a', user: () => 'b' }
    const fields = new Proxy(both, { ownKeys: (target) => (asked++, Reflect.ownKeys(target)) })
    for (let i = 0; i < 100; i++) limitsFrom(watched, { fields })
    asked = 0
    await beat(fileOf(6, { where: 'field:team=a' }))
    await beat()
    expect([limit(), asked]).toEqual([6, 0])
    limitsFrom(watched, { fields: { team: () => 'a' } })
    await beat(fileOf(7, { where: 'field:user=b' }))
    await beat()
    expect(limit()).toBe(6)
    expect(watched.error?.message).toMatch(/no 'field:user'/)
  })

  it('that is bad at first rejects, and comes into force when it is mended', async () => {
    jest.useFakeTimers()
    expectWarnings(['POLICIES_REFUSED'])
    let text = '{'
    const watched = watchPolicies(async () => text)
    open.push(watched)
    await expect(watched.ready()).rejects.toThrow(/line 1: expected/)
    expect(() => watched.current).toThrow(/await watched.ready\(\)/)
    text = fileOf(5)
    await jest.advanceTimersByTimeAsync(2000)
    expect(policiesOf(watched, 'api')![0]!.limit).toBe(5)
  })

  it('is not read any more once it is closed', async () => {
    const { beat, limit, watched } = await watching(fileOf(5))
    watched.close()
    for (let i = 0; i < 3; i++) await beat(fileOf(6))
    expect(limit()).toBe(5)
  })

  it('is not put into force, refused or reported by a read that ends after it was closed', async () => {
    for (const text of [fileOf(6), new Error('gone')]) {
      jest.useFakeTimers()
      const errors: Error[] = []
      let next: string | Promise<string> = fileOf(5)
      const watched = watchPolicies(async () => next, { onError: (error) => errors.push(error) })
      open.push(watched)
      await watched.ready()
      next = fileOf(6)
      await jest.advanceTimersByTimeAsync(1000)
      let end: (text: string | Promise<string>) => void = () => {}
      next = new Promise((resolve) => (end = resolve))
      await jest.advanceTimersByTimeAsync(1000)
      watched.close()
      end(text instanceof Error ? Promise.reject(text) : text)
      await jest.advanceTimersByTimeAsync(1000)
      expect([policiesOf(watched, 'api')![0]!.limit, errors, watched.errors]).toEqual([5, [], 0])
    }
  })

  it('that is closed during its first read is not ready', async () => {
    let end: (text: string) => void = () => {}
    const watched = watchPolicies(() => new Promise<string>((resolve) => (end = resolve)))
    watched.close()
    end(fileOf(5))
    await expect(watched.ready()).rejects.toThrow('the watch was closed during the read')
    expect(() => watched.current).toThrow(/no policy file is in force/)
  })

  const FAILING: readonly (readonly [how: string, listener: () => unknown])[] = [
    [
      'throws',
      () => {
        throw new Error('mine')
      },
    ],
    ['rejects', () => Promise.reject(new Error('mine'))],
  ]
  it.each(FAILING)('is in force where onChange %s, which is a warning of its own', async (_, onChange) => {
    expectWarnings(['LISTENER_FAILED'])
    const { beat, limit, errors, watched } = await watching(fileOf(5), { onChange })
    await beat(fileOf(6))
    await beat()
    await beat()
    expect([limit(), errors, watched.errors, watched.error, watched.ageMs]).toEqual([6, [], 0, undefined, 0])
  })

  it.each(FAILING)('rejects with the error of its first read where onError %s', async (_, onError) => {
    expectWarnings(['LISTENER_FAILED'])
    const watched = watchPolicies(async () => '{', { onError })
    open.push(watched)
    await expect(watched.ready()).rejects.toThrow(/line 1: expected/)
  })

  it('waits for a read that takes longer than a beat, and its age grows', async () => {
    jest.useFakeTimers()
    let reads = 0
    const watched = watchPolicies(() => {
      reads++
      return reads === 1 ? Promise.resolve(fileOf(5)) : new Promise(() => {})
    })
    open.push(watched)
    await watched.ready()
    await jest.advanceTimersByTimeAsync(5000)
    expect([reads, watched.ageMs]).toEqual([2, 5000])
  })

  it('may be a value that a function returns', async () => {
    const watched = watchPolicies(async () => JSON.parse(fileOf(7)) as PolicyFile)
    open.push(watched)
    await watched.ready()
    expect(policiesOf(watched, 'api', 'none')![0]!.limit).toBe(7)
    expect(policiesOf(watched, 'other')).toBeUndefined()
  })
})

describe('a file at a path', () => {
  let folder: string
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'sluice-policies-'))))
  afterEach(() => rmSync(folder, { recursive: true }))

  /** Resolves once `limit` is in force. */
  async function untilInForce(watched: WatchedPolicies, limit: number): Promise<void> {
    while (policiesOf(watched, 'api')![0]!.limit !== limit)
      await new Promise((resolve) => setTimeout(resolve, 5))
  }

  it('is followed through a rename, symlinks as of a ConfigMap, and its absence', async () => {
    const path = join(folder, 'policies.json')
    const errors: string[] = []
    for (const [version, limit] of [
      [1, 5],
      [2, 6],
      [3, 7],
    ] as const)
      writeFileSync(join(folder, `v${version}`), fileOf(limit))
    symlinkSync('v1', join(folder, 'data'))
    symlinkSync('data', path)
    const watched = watchPolicies(path, { every: '10ms', onError: ({ message }) => errors.push(message) })
    open.push(watched)
    await watched.ready()
    symlinkSync('v2', join(folder, 'next'))
    renameSync(join(folder, 'next'), join(folder, 'data'))
    await untilInForce(watched, 6)
    unlinkSync(path)
    while (errors.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    expect(policiesOf(watched, 'api')![0]!.limit).toBe(6)
    renameSync(join(folder, 'v3'), path)
    await untilInForce(watched, 7)
    expect(errors).toEqual([expect.stringMatching(/ENOENT/)])
    writeFileSync(path, Buffer.alloc(2 ** 20 + 1, ' '))
    while (errors.length === 1) await new Promise((resolve) => setTimeout(resolve, 5))
    expect(errors[1]).toMatch(/1 MB/)
  })
})

describe('limits of a watched file', () => {
  it('act from the next request on: numbers, where, limiters that come and go, with what was consumed', async () => {
    const file = { current: readPolicies(fileOf(2)), require() {} }
    const app = express()
    app.use(rateLimit({ limits: limitsFrom(file), headers: 'ietf' }))
    app.use((_req, res) => void res.send('ok'))
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const ask = async (path = '/') => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`)
      await response.text()
      return `${response.status} ${response.headers.get('ratelimit')?.replace(/;t=\d+/g, '')}`
    }
    const change = (text: string) => {
      file.current = readPolicies(text)
      expect(file.current.errors).toEqual([])
    }
    expect([await ask(), await ask(), await ask()]).toEqual([
      '200 "api";r=1',
      '200 "api";r=0',
      '429 "api";r=0',
    ])
    change(fileOf(4))
    expect(await ask()).toBe('200 "api";r=1')
    change(fileOf(1))
    expect(await ask()).toBe('429 "api";r=0')
    const login = { policies: [{ algorithm: 'slidingLog', limit: 2, window: '1h' }], where: 'path=/login' }
    const { api } = JSON.parse(fileOf(5)).limiters
    change(JSON.stringify({ limiters: { login, api } }))
    expect(await ask('/login?now')).toBe('200 "login";r=1, "api";r=1')
    change(JSON.stringify({ limiters: { login: { ...login, where: 'path=/enter' } } }))
    expect(await ask('/login')).toBe('200 undefined')
    expect(await ask('/enter')).toBe('200 "login";r=0')
    change(JSON.stringify({ limiters: { api } }))
    expect(await ask('/login')).toBe('200 "api";r=0')
    server.closeAllConnections()
    server.close()
  })
})

describe('limiterFrom', () => {
  it('follows the policies of a watched file, and keeps the last where the limiter is gone', async () => {
    const { watched, beat } = await watching(fileOf(1))
    const limiter = limiterFrom(watched, 'api', { store: memoryStore({ clock: () => 0 }) })
    expect([(await limiter.consume('a')).allowed, (await limiter.consume('a')).allowed]).toEqual([
      true,
      false,
    ])
    await beat(fileOf(3))
    await beat()
    const decision = await limiter.consume('a')
    expect([decision.allowed, decision.limit, decision.remaining]).toEqual([true, 3, 1])
    expect(limiter.policies[0]!.limit).toBe(3)
    const other = JSON.stringify({ limiters: { other: JSON.parse(fileOf(1)).limiters.api } })
    await beat(other)
    await beat()
    expect((await limiter.consume('a')).limit).toBe(3)
    expect(() => limiterFrom(watched, 'api')).toThrow(/no limiter 'api'/)
    await limiter.close()
    await expect(limiter.consume('a')).rejects.toThrow(/closed/)
  })

  it('bans under the lists of the plans and those of its tiers', async () => {
    const window = (limit: number, per: string) => ({ algorithm: 'fixedWindow', limit, window: per })
    const read = readPolicies(
      JSON.stringify({
        limiters: { api: { policies: [window(5, '1m')], plans: { pro: [window(50, '1h')] } } },
      }),
    )
    const store = memoryStore({ clock: () => 0 })
    const own = [gcra({ limit: 9, window: '1s' })]
    await limiterFrom(read, 'api', { store, tiers: [own] }).block('u', '10m')
    const limiter = limiterFrom(read, 'api', { store })
    for (const policies of [undefined, policiesOf(read, 'api', 'pro')!, own]) {
      const { reason } = await limiter.peek('u', policies && { policies })
      expect(reason).toBe('blocked')
    }
    expect(() => limiterFrom(read, 'api', { store, tiers: own as never })).toThrow(/tiers must be lists/)
  })
})

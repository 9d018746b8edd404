import { Ajv2020 } from 'ajv/dist/2020.js'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { wideWindow } from '@sluice/core'
import { policySchema, readPolicies } from '@sluice/policies'
import { main } from '../../../cli/src/terminal/main.js'
import { Answers } from '../../../demo/src/answers.js'
import { summarize } from '../../../demo/src/summary.js'
import { brokenStates } from '../../../faults/src/broken-states.js'
import { everyAlgorithm } from '../../../faults/src/every-algorithm.js'
import { policyOf } from '../../../faults/src/policy-spec.js'
import { readWirePolicies, WirePolicies } from '../../../machine/src/wire-policies.js'
import { PRESETS } from '../../../../site/playground/presets.js'
import { ALGORITHMS } from '../../../../site/playground/scenario.js'

/** A multiple of two minutes and of three. */
const S = 1_760_104_440
/** How many minutes are counted together. */
const MINUTES = { double: 2, triple: 3 } as const

/** Ten minutes of two callers, the seconds of whose calls repeat every 41 and 97 seconds. */
const CALLS = Array.from({ length: 600 }, (_, i) => i).flatMap((second) => [
  ...(second % 41 < 9 ? [[second, '10.0.0.1'] as const] : []),
  ...(second % 97 < 5 ? [[second, '10.0.0.2'] as const] : []),
])
const LOG = CALLS.map(([second, ip]) => {
  const time = new Date((S + second) * 1000)
    .toUTCString()
    .replace(/^.*?, (..) (...) (....) (.*) GMT$/, '$1/$2/$3:$4 +0000')
  return `${ip} - - [${time}] "GET / HTTP/1.1" 200 5\n`
}).join('')

/** How many calls of each caller lie in each span of so many minutes, counted from the log. */
function counted(minutes: number): number[] {
  const counts = new Map<string, number>()
  for (const [second, ip] of CALLS) {
    const span = `${ip} ${Math.floor((S + second) / (60 * minutes))}`
    counts.set(span, (counts.get(span) ?? 0) + 1)
  }
  return [...counts.values()]
}

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-further-'))
  writeFileSync(join(folder, 'access.log'), LOG)
})
afterAll(() => rmSync(folder, { recursive: true }))

/** The text of a command, and its exit code. */
async function sluice(...args: readonly string[]) {
  let text = ''
  const write = jest.spyOn(process.stdout, 'write').mockImplementation((part) => {
    text += String(part)
    return true
  })
  try {
    return { code: await main(['node', 'sluice', ...args], '0.0.0'), text }
  } finally {
    write.mockRestore()
  }
}

/** The path of a policy file with these policies. */
function file(...policies: readonly object[]): string {
  const path = join(folder, 'policies.json')
  writeFileSync(path, JSON.stringify({ limiters: { api: { policies } } }))
  return path
}

describe.each(['double', 'triple'] as const)('a further algorithm, %s', (width) => {
  const wide = { algorithm: 'wideWindow', limit: 10, window: '1m', width }
  const policy = wideWindow({ limit: 10, window: '1m', width })
  const minutes = MINUTES[width]

  it('is read from policy files, and described by their schema', () => {
    const text = JSON.stringify({ limiters: { api: { policies: [wide] } } })
    const { limiters, errors } = readPolicies(text)
    expect(errors).toEqual([])
    expect(limiters[0]?.policies[0]?.shape).toBe(policy.shape)
    const validate = new Ajv2020({ strict: false }).compile(policySchema())
    expect(validate(JSON.parse(text))).toBe(true)
    expect(validate(JSON.parse(text.replace(width, 'half')))).toBe(false)
  })

  it('is judged by its bounds in `sluice check`', async () => {
    const smelly = await sluice('check', file(wide))
    expect(smelly.text).toContain('20 calls may pass within 1m around the end of a window')
    // It admits 20 a minute at most, and around its edges not one less.
    const log = { algorithm: 'slidingLog', window: '1m' }
    const isVoid = async (limit: number) =>
      (await sluice('check', file(wide, { ...log, limit }))).text.includes('VOID_POLICY')
    expect([await isVoid(20), await isVoid(19)]).toEqual([true, false])
  })

  it('is replayed as it decides', async () => {
    const denied = counted(minutes).reduce((sum, calls) => sum + Math.max(0, calls - 10), 0)
    const { text } = await sluice('replay', join(folder, 'access.log'), file(wide), '--json')
    expect(denied).toBeGreaterThan(0)
    expect(JSON.parse(text).answers[0].limiters[0].denied).toBe(denied)
  })

  it('is sent to the server of a machine, which makes it again', () => {
    const { text } = new WirePolicies('api', [policy])
    expect(readWirePolicies(text).policies[0]).toEqual(policy)
  })

  it('is checked by the demo for the most that it permits', () => {
    const caller = { name: 'eve', callsPerSecond: 1 }
    const held = [10, 20, 30].map((allowed) => {
      const answers = new Answers(
        { method: 'GET', path: '/', by: 'IP', policies: [policy], callers: [caller] },
        caller,
      )
      for (let i = 0; i < allowed; i++)
        answers.add({ verdict: 'allowed', remaining: 0, retryAfter: undefined, deniedBy: [] }, 0, 60_000)
      const { text, held: isHeld } = summarize([answers.route], [answers])
      expect(text).toMatch(new RegExp(`eve +${allowed} +${allowed} +0 +20 `))
      return isHeld
    })
    expect(held).toEqual([true, true, false])
  })

  it('has its rows in the fault matrix', () => {
    const title = width === 'double' ? 'wide window' : 'wide window, width triple'
    const spec = new Map(everyAlgorithm(5)).get(title)!
    // Its windows are aligned, so none may end while a row runs.
    expect(spec[1]).toEqual({ limit: 5, window: '365d', ...(width === 'triple' && { width }) })
    const broken = brokenStates(policyOf(spec), Buffer.alloc(88)).map(([what]) => what)
    expect(broken).toEqual(expect.arrayContaining(['start 0.5', 'count 0.5']))
  })
})

describe('a further algorithm', () => {
  it('gets the smallest limit that never denies from `sluice suggest`', async () => {
    const args = ['--algorithm', 'wideWindow', '--windows', '1m', '--untouched', '100']
    const { text } = await sluice('suggest', join(folder, 'access.log'), ...args, '--json')
    const { policy } = JSON.parse(text).windows[0].recommended
    expect(policy).toEqual({ algorithm: 'wideWindow', limit: Math.max(...counted(2)), window: '1m' })
    expect((await sluice('suggest', join(folder, 'access.log'), ...args)).text).toContain(
      '"algorithm":"wideWindow"',
    )
  })

  it('has its options in the playground, which has no preset of it', () => {
    expect(Object.keys(ALGORITHMS['wideWindow'] ?? {})).toEqual(['limit', 'window', 'name', 'width'])
    expect(PRESETS.filter(({ fragment }) => fragment.includes('wideWindow'))).toEqual([])
  })
})

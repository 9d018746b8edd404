import { Ajv2020 } from 'ajv/dist/2020.js'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { policySchema, readPolicies } from '@sluice/policies'

const validate = new Ajv2020({ strict: false }).compile(policySchema())

const POLICIES: readonly (readonly [title: string, policy: object])[] = [
  ['a sliding log', { algorithm: 'slidingLog', limit: 1, window: '1m' }],
  ['a window in milliseconds', { algorithm: 'gcra', limit: 1, window: 60_000, burst: 3, slots: 16 }],
  ['a token bucket', { algorithm: 'tokenBucket', limit: 1, window: '1h', capacity: 3, refill: 'interval' }],
  [
    'a weighted window',
    { algorithm: 'slidingWindow', limit: 1, window: '1h', buckets: 1, count: 'weighted' },
  ],
  ['no limit', { algorithm: 'gcra', window: '1m' }],
  ['an option of another algorithm', { algorithm: 'slidingLog', limit: 1, window: '1m', burst: 2 }],
  ['a limit below 0', { algorithm: 'gcra', limit: -1, window: '1m' }],
  ['a window without a unit', { algorithm: 'gcra', limit: 1, window: '60' }],
  ['an unknown refill', { algorithm: 'tokenBucket', limit: 1, window: '1h', refill: 'slow' }],
  ['a name that is not printable', { algorithm: 'gcra', limit: 1, window: '1m', name: 'ü' }],
]

describe('the schema', () => {
  it.each(POLICIES)('agrees with the check about %s', (_, policy) => {
    const file = { limiters: { api: { policies: [policy] } } }
    expect(validate(file)).toBe(readPolicies(JSON.stringify(file)).errors.length === 0)
  })

  it.each(['pro', ''])('agrees with the check about a plan named %j', (name) => {
    const [[, policy]] = POLICIES as [(typeof POLICIES)[0]]
    const file = { limiters: { api: { policies: [policy], plans: { [name]: [policy] } } } }
    expect(validate(file)).toBe(readPolicies(JSON.stringify(file)).errors.length === 0)
  })

  it('is the file that is published', () => {
    const published = readFileSync(join(__dirname, '../schema.json'), 'utf8')
    expect(JSON.parse(published)).toEqual(JSON.parse(JSON.stringify(policySchema())))
  })
})

import { type Declaration, oneOf } from '@sluice/core/internal'
import { controlOf } from '../controls.js'
import { ALGORITHMS, EXTRAS, fieldsBeside, KINDS, SETTINGS } from '../scenario.js'

const DECLARATIONS: Readonly<Record<string, Declaration>> = {
  settings: SETTINGS,
  ...ALGORITHMS,
  ...Object.fromEntries(Object.entries(EXTRAS).map(([name, { declared }]) => [name, declared])),
}

it.each(Object.entries(DECLARATIONS))('every option of %s has a control', (_, declared) => {
  for (const option of Object.values(declared)) expect(controlOf(option).kind).toMatch(/./)
})

it.each([
  ['slidingWindow', 'count', ['whole', 'weighted']],
  ['tokenBucket', 'refill', ['greedy', 'interval']],
  ['penalty', 'then', ['window', 'fresh']],
] as const)('%s: %s is chosen', (of, name, choices) => {
  expect(controlOf(DECLARATIONS[of]![name]!)).toMatchObject({ kind: 'choice', choices })
})

it.each([
  ['gcra', 'window', 'duration'],
  ['gcra', 'limit', 'number'],
  ['penalty', 'block', 'duration'],
  ['settings', 'list', 'text'],
] as const)('%s: %s is a %s', (of, name, kind) => {
  expect(controlOf(DECLARATIONS[of]![name]!).kind).toBe(kind)
})

it('traffic is chosen from all kinds', () => {
  const kind = fieldsBeside({ kind: 'even' })['kind']!
  expect(controlOf(kind)).toEqual({ kind: 'choice', choices: Object.keys(KINDS), otherwise: 'even' })
})

it('a default is shown as it is written', () => {
  expect(controlOf(SETTINGS.span)).toEqual({ kind: 'duration', otherwise: '30s' })
  expect(controlOf(SETTINGS.rate)).toEqual({ kind: 'number', otherwise: '10' })
})

it('an option of another form has none', () => {
  const option = { ...oneOf(['a', 'b']), domain: undefined }
  expect(() => controlOf(option)).toThrow("there is no control for an option that takes 'a' or 'b'")
})

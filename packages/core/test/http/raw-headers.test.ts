import { hasRawHeader } from '../../src/http/index.js'

const RECEIVED = ['Host', 'forwarded', 'X-Forwarded-For', '192.0.2.1', 'Accept', '*/*']

it.each([
  ['x-forwarded-for', true],
  ['accept', true],
  ['forwarded', false], // a value
  ['x-forwarded-fox', false],
])('finds %s among the names of the headers, in any case: %s', (name, expected) => {
  expect(hasRawHeader(RECEIVED, name)).toBe(expected)
})

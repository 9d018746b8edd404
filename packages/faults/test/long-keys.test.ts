import { longKeysApart } from '../src/rows/row-18-long-keys.js'

it('keys of 8,192 characters fill nothing beyond the bytes that docs/sizing.md names', () => {
  const { pass, figure } = longKeysApart()
  expect({ pass, figure }).toEqual({ pass: true, figure })
}, 120_000)

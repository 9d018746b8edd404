import axios from 'axios'
import fc from 'fast-check'
import { urlOf } from '../src/axios-url.js'

const base = 'https://api.example'
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 6 }),
  fc.constantFrom("a b!'()~:$,", 'a[]', 'b{}', ' c '),
)
const plain = fc.oneof(
  text,
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.constant(undefined),
  fc.date({ noInvalidDate: true }),
)
const list = fc.array(plain, { maxLength: 3 })
const key = fc.oneof(
  fc.stringMatching(/^[a-z$_]{1,4}$/),
  fc.constantFrom('a[]', 'b{}', ' c ', 'd.e', '__proto'),
)
const object = fc.dictionary(
  key,
  fc.oneof(plain, list, fc.array(fc.dictionary(key, plain, { maxKeys: 2 }), { maxLength: 2 })),
  { maxKeys: 3 },
)
const params = fc.dictionary(key, fc.oneof(plain, list, object), { maxKeys: 4 })
const serializer = fc.record(
  { indexes: fc.constantFrom(true, false, null), dots: fc.boolean() },
  { requiredKeys: [] },
)

it('is the URL that axios builds, for any parameters', () => {
  fc.assert(
    fc.property(params, fc.option(serializer, { nil: undefined }), (params, paramsSerializer) => {
      const config = { url: `${base}/pay`, params, ...(paramsSerializer && { paramsSerializer }) }
      expect(urlOf(config).href).toBe(new URL(axios.getUri(config)).href)
    }),
    { numRuns: 1000 },
  )
})

it.each([
  [{ url: '/pay', baseURL: `${base}/v1//` }],
  [{ url: 'pay?a=1#part', baseURL: `${base}/v1`, params: { b: 1 } }],
  [{ baseURL: `${base}/v1` }],
  [{ url: 'https://b.example/pay', baseURL: base }],
  [{ url: 'https://b.example/pay', baseURL: base, allowAbsoluteUrls: false }],
  [{ url: base, params: new URLSearchParams('a=1&a=2') }],
  [
    {
      url: base,
      params: { a: "x y'" },
      paramsSerializer: { encode: (value: string) => value.toUpperCase() },
    },
  ],
  [
    {
      url: base,
      params: { a: "x y'" },
      paramsSerializer: { encode: (value: string, byDefault: any) => byDefault(value) },
    },
  ],
  [{ url: base, params: { a: 1 }, paramsSerializer: { serialize: () => 'own' } }],
  [{ url: base, params: { a: 1 }, paramsSerializer: (() => 'own') as never }],
])('is the URL of axios for %j', (config) => {
  expect(urlOf(config).href).toBe(new URL(axios.getUri(config)).href)
})

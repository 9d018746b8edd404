import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { digest } from '../../src/values/key.js'
import { sha256 } from '../../src/values/sha256.js'

const nodes = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

describe('SHA-256', () => {
  // FIPS 180-4, and the million of `a` from its examples.
  it.each([
    ['', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
    ['abc', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
    [
      'abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq',
      '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1',
    ],
    ['a'.repeat(1_000_000), 'cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0'],
  ])('of %.20j is what the standard says', (text, expected) => {
    expect(sha256(new TextEncoder().encode(text))).toBe(expected)
  })

  it('is that of Node for every length around four borders of blocks', () => {
    for (let length = 0; length <= 260; length++) {
      const bytes = Uint8Array.from({ length }, (_, i) => (i * 167 + length * 31) & 255)
      expect([length, sha256(bytes)]).toEqual([length, nodes(bytes)])
    }
  })

  it('is that of Node for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 5000 }), (bytes) => sha256(bytes) === nodes(bytes)),
      { numRuns: 2000 },
    )
  })

  it('does not read beyond a view of a larger buffer', () => {
    const bytes = Uint8Array.from({ length: 300 }, (_, i) => i & 255).subarray(101, 203)
    expect(sha256(bytes)).toBe(nodes(bytes))
  })
})

describe('the digest of a key', () => {
  it('is that of its UTF-16 units, so that lone surrogates stay apart', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 300 }),
        fc.constantFrom('', '\ud800', '\udfff'),
        (text, lone) => {
          expect(digest(text + lone)).toBe(nodes(Buffer.from(text + lone, 'utf16le')))
        },
      ),
      { numRuns: 1000 },
    )
    expect(digest('\ud800')).not.toBe(digest('\udfff'))
  })
})

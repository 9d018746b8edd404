import { gzipSync } from 'node:zlib'
import { bytesOf, split } from '../log-bytes.js'

const LINES = Array.from({ length: 3 }, (_, i) => `${i} ${'line\n'.repeat(100)}`)
const WHOLE = LINES.join('')

async function all<T>(given: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const each of given) found.push(each)
  return found
}

async function textOf(file: Blob, length?: number): Promise<string> {
  const parts: number[] = []
  let text = ''
  let pieces = 0
  for await (const bytes of bytesOf(file, (part) => parts.push(part), length)) {
    text += Buffer.from(bytes).toString()
    pieces++
  }
  expect(parts).toHaveLength(pieces)
  expect(parts).toEqual([...parts].sort((one, other) => one - other))
  expect(parts.at(-1) ?? 1).toBe(1)
  return text
}

describe('the bytes of a log', () => {
  const members = LINES.map((text) => gzipSync(text))
  const packed = new Blob(members)

  it('are those of the file, in pieces of any length', async () => {
    for (const length of [1, 7, 4096, undefined]) expect(await textOf(new Blob([WHOLE]), length)).toBe(WHOLE)
    expect(await textOf(new Blob([]))).toBe('')
  })

  it.each([1, 3, 10, 2 ** 20])('are unpacked, member by member, in pieces of %d', async (length) => {
    expect(await textOf(packed, length)).toBe(WHOLE)
  })

  it('are cut where a member begins, also across pieces', async () => {
    const ends = members.map((_, i) => members.slice(0, i + 1).reduce((sum, each) => sum + each.length, 0))
    for (let length = 1; length < 30; length++) {
      let at = 0
      const found: number[] = []
      for (const { bytes, isLast } of await all(split(packed, length))) {
        at += bytes.length
        if (isLast) found.push(at)
      }
      expect(found).toEqual(ends)
    }
  })

  it('of a file that was cut off come before the error', async () => {
    let text = ''
    const reading = async () => {
      for await (const bytes of bytesOf(packed.slice(0, -4), () => {})) text += Buffer.from(bytes).toString()
    }
    await expect(reading()).rejects.toThrow(/end of file/)
    expect(text).toBe(WHOLE)
  })
})

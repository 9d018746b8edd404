import { gzipSync } from 'node:zlib'
import { bytesOf } from '../log-bytes.js'

const LINES = Array.from({ length: 3 }, (_, i) => `${i} ${'line\n'.repeat(100)}`)
const WHOLE = LINES.join('')

async function textOf(file: Blob, length?: number): Promise<string> {
  const parts: number[] = []
  let text = ''
  for await (const bytes of bytesOf(file, (part) => parts.push(part), length))
    text += Buffer.from(bytes).toString()
  expect(parts).toHaveLength(Math.ceil(file.size / (length ?? 2 ** 18)))
  expect(parts).toEqual([...parts].sort((one, other) => one - other))
  expect(Math.max(0, ...parts)).toBeLessThan(1)
  return text
}

describe('the bytes of a log', () => {
  const packed = new Blob(LINES.map((text) => gzipSync(text)))

  it('are those of the file, in pieces of any length', async () => {
    for (const length of [1, 7, 4096, undefined]) expect(await textOf(new Blob([WHOLE]), length)).toBe(WHOLE)
    expect(await textOf(new Blob([]))).toBe('')
  })

  it('are unpacked, member by member, in pieces of any length, also where a piece ends within a header', async () => {
    for (const length of [...Array.from({ length: 30 }, (_, i) => i + 1), 2 ** 20])
      expect(await textOf(packed, length)).toBe(WHOLE)
  })

  it.each([-4, -40])('of a file that was cut off %d bytes before its end are an error', async (end) => {
    await expect(textOf(packed.slice(0, end))).rejects.toThrow(/end of file/)
  })
})

import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { startMember } from '../fleet.js'
import type { Outcome, Row } from '../row.js'
import type { WatchingJob, WatchingResult } from '../workers/watching.js'

/**
 * A policy file is written again and again while four processes decide by it: in place and in halves that parse, by renames and
 * symlinks, broken, too large, of other shapes, and not at all. Each decision is of a good file, and the last one is in force at last.
 */
export const row: Row = { number: 49, fault: 'policy files that are being written', run: write }

const ENTRY = 'packages/faults/src/workers/watching.ts'
const FILES = 10_000
const EVERY_MS = 100

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** A file whose limit has the same three digits twice. Two of them make one that has not. */
const goodFile = (i: number): string => fileOf('slidingWindow', `${digitsOf(i)}${digitsOf(i)}`)
const digitsOf = (i: number): number => 100 + (i % 900)
const fileOf = (algorithm: string, limit: string): string =>
  `{"limiters":{"api":{"policies":[{"algorithm":"${algorithm}","limit":${limit},"window":"1d"}]}}}`

/** Writes a part of the files, `share`, each for a few milliseconds, and each fiftieth, good or wrong, long enough to come into force. */
async function write(share: number): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-policy-files-'))
  const path = join(folder, 'policies.json')
  writeFileSync(path, goodFile(0))
  const members = await Promise.all(Array.from({ length: 4 }, () => startMember(ENTRY, resolve('.'))))
  try {
    const job: WatchingJob = { path, end: join(folder, 'end'), everyMs: EVERY_MS }
    await Promise.all(members.map((member) => member.prepare(job)))
    const running = Promise.all(members.map((member) => member.go() as Promise<WatchingResult>))
    const files = Math.round(FILES * share)
    const stalled = new Set<number>()
    for (let i = 1; i <= files; i++) await writeFile(path, i, stalled)
    renameOver(path, goodFile(7))
    await pause(10 * EVERY_MS)
    writeFileSync(job.end, '')
    const results = await running
    const sum = (of: (result: WatchingResult) => number) => results.reduce((all, each) => all + of(each), 0)
    const wrong = sum((each) =>
      sumOf(Object.entries(each.wrong).filter(([limit]) => !stalled.has(Number(limit)))),
    )
    const last = results.every((each) => each.last === Number(`${digitsOf(7)}${digitsOf(7)}`))
    const isMet = results.every((each) => each.limits > 2 && each.errors > 0)
    return {
      pass: wrong === 0 && last && isMet,
      figure:
        `${files} files, ${sum((each) => each.decisions).toLocaleString('en')} decisions of 4 processes, ` +
        `${wrong} of no good file, ${stalled.size} halves stood for a beat; ${sum((each) => each.limits)} came into force, ${sum((each) => each.errors)} were reported; the last one ${last ? 'is' : 'is not'} in force`,
    }
  } finally {
    await Promise.all(members.map((member) => member.end()))
    rmSync(folder, { recursive: true })
  }
}

const sumOf = (counts: readonly (readonly [string, number])[]): number =>
  counts.reduce((all, [, count]) => all + count, 0)

/**
 * Writes file number `i` in one of ten ways. Adds the limit of a half that stood for a beat to `stalled`, as on a busy machine: it
 * is a file as good as any.
 */
async function writeFile(path: string, i: number, stalled: Set<number>): Promise<void> {
  if (i % 100 === 0) {
    renameOver(path, goodFile(i))
    return pause(4 * EVERY_MS)
  }
  if (i % 100 === 50) {
    renameOver(path, i % 200 === 50 ? goodFile(i).slice(0, 40) : fileOf('gcra', '1'))
    return pause(4 * EVERY_MS)
  }
  const good = goodFile(i)
  const way = i % 10
  if (way === 5) renameOver(path, good.slice(0, 30 + (i % 40)))
  else if (way === 6) renameOver(path, fileOf('gcra', '1'))
  else if (way === 7) rmSync(path)
  else if (way === 8) renameOver(path, good + ' '.repeat(2 ** 20))
  else if (way === 9) {
    writeFileSync(`${path}.${i % 2}`, good)
    symlinkSync(`${path}.${i % 2}`, `${path}.link`)
    renameSync(`${path}.link`, path)
  } else return inHalves(path, good, stalled)
  await pause(2)
}

/** Writes over the file that is there: first the beginning, up to the middle of the limit, then the rest. */
async function inHalves(path: string, text: string, stalled: Set<number>): Promise<void> {
  const file = openSync(path, 'a+')
  closeSync(file)
  const half = text.indexOf(',"window"') - 3
  const descriptor = openSync(path, 'r+')
  const begunAt = performance.now()
  writeSync(descriptor, text.slice(0, half), 0)
  const between = /"limit":(\d+)/.exec(readFileSync(path, 'utf8'))?.[1]
  await pause(2)
  writeSync(descriptor, text.slice(half), half)
  if (performance.now() - begunAt >= EVERY_MS) stalled.add(Number(between))
  closeSync(descriptor)
  truncateSync(path, text.length)
}

function renameOver(path: string, text: string): void {
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}

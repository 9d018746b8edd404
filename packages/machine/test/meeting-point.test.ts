import fs, {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { greet } from '../src/greeting.js'
import { type MeetingPoint, NamedPipe, SocketFolders } from '../src/meeting-point.js'
import type { Claim } from '../src/socket-folder.js'
import { PROTOCOL } from '../src/protocol.js'
import { expectWarnings } from '@sluice/harness/warnings'

let parent: string
let folder: string
const listeners: Server[] = []
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'sluice-'))
  folder = join(parent, `${PROTOCOL}-test`)
})
afterEach(async () => {
  jest.restoreAllMocks()
  await Promise.all(listeners.splice(0).map(end))
  rmSync(parent, { recursive: true })
})

function end(listener: Server): Promise<unknown> {
  return new Promise((resolve) => listener.close(resolve))
}

/** A process that claims the place after `former`. */
async function claim(
  meetingPoint: MeetingPoint,
  former = meetingPoint.newest(),
): Promise<[Claim | undefined, Server]> {
  const listener = createServer((socket) => socket.destroy())
  listeners.push(listener)
  return [await meetingPoint.claim(listener, former), listener]
}

describe('a folder of sockets', () => {
  const open = () => new SocketFolders([parent], 'test')

  it('lets one process claim a number, of those that come at once', async () => {
    const claims = await Promise.all(Array.from({ length: 20 }, () => claim(open())))
    expect(claims.filter(([claimed]) => claimed?.renew())).toHaveLength(1)
    expect(readdirSync(folder)).toEqual(['1'])
  })

  it('turns a process away that is so slow that others have come and gone', async () => {
    const meetingPoint = open()
    const [, first] = await claim(meetingPoint)
    const slow = meetingPoint.newest()
    await end(first)
    const [, second] = await claim(meetingPoint, slow)
    const number2 = meetingPoint.newest()
    await end(second)
    const [third] = await claim(meetingPoint, number2)
    expect(readdirSync(folder)).toEqual(['3']) // the number after `slow` is free again
    const [late] = await claim(meetingPoint, slow)
    expect(late).toBeUndefined()
    expect(third!.renew()).toBe(true)
    expect(readdirSync(folder)).toEqual(['3'])
  })

  it('keeps the highest number when its process ends', async () => {
    const [, listener] = await claim(open())
    await end(listener)
    expect(readdirSync(folder)).toEqual(['1'])
    expect(await greet(open().newest()[0]!, 'test', 0)).toBe('refused')
  })

  it('says when another number came, or the own one went', async () => {
    const [claimed] = await claim(open())
    expect(claimed!.renew()).toBe(true)
    writeFileSync(join(folder, '2'), '')
    expect(claimed!.renew()).toBe(false)
    unlinkSync(join(folder, '2'))
    expect(claimed!.renew()).toBe(true)
    unlinkSync(join(folder, '1'))
    expect(claimed!.renew()).toBe(false)
  })

  it.each(['EMFILE', 'ENFILE', 'EACCES'])('says that none came when the system answers %s', async (code) => {
    const [claimed] = await claim(open())
    writeFileSync(join(folder, '2'), '')
    const refusal = jest.spyOn(fs, 'readdirSync').mockImplementation(() => {
      throw Object.assign(new Error(code), { code })
    })
    expect(claimed!.renew()).toBe(true)
    refusal.mockRestore()
    expect(claimed!.renew()).toBe(false)
  })

  it('is made again where somebody has deleted it', async () => {
    const meetingPoint = open()
    rmSync(folder, { recursive: true })
    expect(meetingPoint.newest()).toEqual([])
    expect(existsSync(folder)).toBe(true)
  })
})

describe('folders to choose from', () => {
  const places = () => [0, 1, 2].map((i) => join(parent, `${i}`))
  const open = () => new SocketFolders(places(), 'test')
  /** Takes a place as another user would. */
  const take = (i: number) => writeFileSync(join(parent, `${i}`), '')
  const giveBack = (i: number) => unlinkSync(join(parent, `${i}`))
  beforeEach(() => void expectWarnings([], { perhaps: ['FOLDER_TAKEN'] }))

  it('are served from the first that is free, and looked through in all', async () => {
    take(0)
    await claim(open())
    const address = join(parent, '1', `${PROTOCOL}-test`, '1')
    expect(open().newest()).toEqual([address])
    giveBack(0)
    expect(open().newest()).toEqual([address])
    const [late] = await claim(open())
    expect(late).toBeUndefined()
  })

  it.each([
    ['as soon as it listens', 0],
    ['at the same moment', 1],
  ])('have one server if two claim different ones %s', async (_, together) => {
    take(0)
    const slow = claim(open())
    if (!together) await slow
    giveBack(0)
    const claims = await Promise.all([slow, claim(open())])
    expect(claims.filter(([claimed]) => claimed).length).toBeLessThanOrEqual(1)
    for (const [claimed, listener] of claims) if (!claimed) await end(listener)
    const more = await Promise.all([claim(open()), claim(open())])
    expect([...claims, ...more].filter(([claimed]) => claimed)).toHaveLength(1)
  })

  it('are left by a server whose folder was deleted and made by another user', async () => {
    const [claimed] = await claim(open())
    rmSync(join(parent, '0'), { recursive: true })
    mkdirSync(join(parent, '0', `${PROTOCOL}-test`), { recursive: true, mode: 0o700 })
    jest.spyOn(process, 'getuid').mockReturnValue(process.getuid!() + 1)
    expect(claimed!.renew()).toBe(false)
  })

  it('are refused when all are taken', () => {
    for (const i of [0, 1, 2]) take(i)
    expect(open).toThrow(`got "${join(parent, '0')}", which is no directory`)
  })
})

describe('a given folder', () => {
  const open = (path: string) => SocketFolders.within(join(parent, path), 'test')

  it('is made with those above it, for this user alone', () => {
    open('a/b/c')
    for (const path of ['a', 'a/b', 'a/b/c']) expect(statSync(join(parent, path)).mode & 0o777).toBe(0o700)
  })

  it.each([
    ['its group', 0o775],
    ['all', 0o707],
  ])('cannot lie below one that %s can write to', (_, mode) => {
    const part = join(parent, 'a')
    mkdirSync(join(part, 'b'), { recursive: true })
    chmodSync(part, mode)
    expect(() => open('a/b/c')).toThrow(
      `got "${part}", which has mode 0${mode.toString(8)}: chmod go-w ${part}`,
    )
    expect(existsSync(join(part, 'b', 'c'))).toBe(false)
    chmodSync(part, mode & ~0o022)
    open('a/b/c')
  })

  it('may lie below one where only owners delete files', () => {
    mkdirSync(join(parent, 'a'))
    chmodSync(join(parent, 'a'), 0o1777)
    open('a/b')
  })

  it('may be reached by a link, whose way is looked at too', () => {
    mkdirSync(join(parent, 'a', 'b'), { recursive: true })
    symlinkSync(join('a', 'b'), join(parent, 'link'))
    open('link/c')
    expect(existsSync(join(parent, 'a', 'b', 'c'))).toBe(true)
    chmodSync(join(parent, 'a'), 0o777)
    expect(() => open('link/c')).toThrow(`got "${join(parent, 'a')}", which has mode 0777`)
  })

  it('cannot lie behind links without an end', () => {
    symlinkSync('loop', join(parent, 'loop'))
    expect(() => open('loop/a')).toThrow('which cannot be used: ELOOP')
  })
})

// The names of Linux's abstract sockets behave as those of pipes do on Windows: one process has them, until it ends.
const onLinux = process.platform === 'linux' ? describe : describe.skip
onLinux('a named pipe', () => {
  it('belongs to one process until that ends', async () => {
    const meetingPoint = new NamedPipe(`\0sluice-${process.pid}`)
    expect(await greet(meetingPoint.newest()[0]!, 'test', 0)).toBe('refused')
    const claims = await Promise.all(Array.from({ length: 5 }, () => claim(meetingPoint)))
    expect(claims.filter(([claimed]) => claimed?.renew())).toHaveLength(1)
    expect(await greet(meetingPoint.newest()[0]!, 'test', 0)).toBe('closed')
    await Promise.all(claims.map(([, listener]) => end(listener)))
    expect(await greet(meetingPoint.newest()[0]!, 'test', 0)).toBe('refused')
  })
})

import fs, { existsSync, mkdtempSync, readdirSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { greet } from '../src/greeting.js'
import { type Claim, type MeetingPoint, NamedPipe, SocketFolder } from '../src/socket-folder.js'
import { PROTOCOL } from '../src/protocol.js'

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
  former: string | undefined,
): Promise<[Claim | undefined, Server]> {
  const listener = createServer((socket) => socket.destroy())
  listeners.push(listener)
  return [await meetingPoint.claim(listener, former), listener]
}

describe('a folder of sockets', () => {
  const open = () => new SocketFolder(parent, 'test')

  it('lets one process claim a number, of those that come at once', async () => {
    const claims = await Promise.all(Array.from({ length: 20 }, () => claim(open(), undefined)))
    expect(claims.filter(([claimed]) => claimed?.isNewest())).toHaveLength(1)
    expect(readdirSync(folder)).toEqual(['1'])
  })

  it('turns a process away that is so slow that others have come and gone', async () => {
    const meetingPoint = open()
    const [, first] = await claim(meetingPoint, undefined)
    const slow = meetingPoint.newest()
    await end(first)
    const [, second] = await claim(meetingPoint, slow)
    const number2 = meetingPoint.newest()
    await end(second)
    const [third] = await claim(meetingPoint, number2)
    expect(readdirSync(folder)).toEqual(['3']) // the number after `slow` is free again
    const [late] = await claim(meetingPoint, slow)
    expect(late).toBeUndefined()
    expect(third!.isNewest()).toBe(true)
    expect(readdirSync(folder)).toEqual(['3'])
  })

  it('keeps the highest number when its process ends', async () => {
    const [, listener] = await claim(open(), undefined)
    await end(listener)
    expect(readdirSync(folder)).toEqual(['1'])
    expect(await greet(open().newest()!, 'test', 0)).toBe('refused')
  })

  it('says when another number came, or the own one went', async () => {
    const [claimed] = await claim(open(), undefined)
    expect(claimed!.isNewest()).toBe(true)
    writeFileSync(join(folder, '2'), '')
    expect(claimed!.isNewest()).toBe(false)
    unlinkSync(join(folder, '2'))
    expect(claimed!.isNewest()).toBe(true)
    unlinkSync(join(folder, '1'))
    expect(claimed!.isNewest()).toBe(false)
  })

  it.each(['EMFILE', 'ENFILE', 'EACCES'])('says that none came when the system answers %s', async (code) => {
    const [claimed] = await claim(open(), undefined)
    writeFileSync(join(folder, '2'), '')
    const refusal = jest.spyOn(fs, 'readdirSync').mockImplementation(() => {
      throw Object.assign(new Error(code), { code })
    })
    expect(claimed!.isNewest()).toBe(true)
    refusal.mockRestore()
    expect(claimed!.isNewest()).toBe(false)
  })

  it('is made again where somebody has deleted it', async () => {
    const meetingPoint = open()
    rmSync(folder, { recursive: true })
    expect(meetingPoint.newest()).toBeUndefined()
    expect(existsSync(folder)).toBe(true)
  })
})

// The names of Linux's abstract sockets behave as those of pipes do on Windows: one process has them, until it ends.
const onLinux = process.platform === 'linux' ? describe : describe.skip
onLinux('a named pipe', () => {
  it('belongs to one process until that ends', async () => {
    const meetingPoint = new NamedPipe(`\0sluice-${process.pid}`)
    expect(await greet(meetingPoint.newest(), 'test', 0)).toBe('refused')
    const claims = await Promise.all(
      Array.from({ length: 5 }, () => claim(meetingPoint, meetingPoint.newest())),
    )
    expect(claims.filter(([claimed]) => claimed?.isNewest())).toHaveLength(1)
    expect(await greet(meetingPoint.newest(), 'test', 0)).toBe('closed')
    await Promise.all(claims.map(([, listener]) => end(listener)))
    expect(await greet(meetingPoint.newest(), 'test', 0)).toBe('refused')
  })
})

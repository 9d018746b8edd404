import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onSources } from '@sluice/harness/processes'

jest.setTimeout(120_000)

const PROGRAM = 'packages/machine/test/users.ts'
/** Neither has an entry in the system's list of users, as in a container. */
const [USER, STRANGER] = [41_001, 41_002]
const ROOT = 0

interface Seen {
  readonly admitted: number
  readonly serves: boolean
  readonly warnings: readonly string[]
}

let temporary: string
const ending: (() => Promise<unknown>)[] = []
beforeEach(() => {
  temporary = mkdtempSync(join(tmpdir(), 'sluice-users-'))
  chmodSync(temporary, 0o1777)
})
afterEach(async () => {
  await Promise.all(ending.splice(0).map((end) => end()))
  rmSync(temporary, { recursive: true })
})

/** Starts a process of a user. Each `call` of it comes back with what it has seen. */
function start(uid = USER, umask = 0o22): () => Promise<Seen> {
  const child = spawn(process.execPath, [...onSources(), PROGRAM, String(uid), String(umask)], {
    env: { ...process.env, TMPDIR: temporary, NODE_NO_WARNINGS: '' },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close')
  let errors = ''
  child.stderr.on('data', (text: Buffer) => (errors += String(text)))
  ending.push(() => {
    child.kill()
    return closed
  })
  return async () => {
    child.stdin.write('call\n')
    const [line] = (await Promise.race([once(child.stdout, 'data'), closed])) as [Buffer | number]
    if (typeof line === 'number') throw new Error(errors)
    return JSON.parse(String(line)) as Seen
  }
}

/** What another user does in the folder for temporary files. Returns whether it worked. */
function stranger(command: 'mkdir' | 'rmdir', name: string): boolean {
  const path = join(temporary, name)
  return spawnSync(command, [path], { uid: STRANGER, gid: STRANGER, stdio: 'ignore' }).status === 0
}

/** Only root can be other users. */
const asRoot = process.getuid?.() === ROOT ? describe : describe.skip

asRoot('a default store (needs root, to be other users too)', () => {
  it.each([
    ['root', ROOT, 0o22],
    ['a user without a name', USER, 0o22],
    ['a user whose umask is 002', USER, 0o002],
    ['a user whose umask is 077', USER, 0o77],
  ])('starts as %s, in a folder of mode 0700', async (_, uid, umask) => {
    expect(await start(uid, umask)()).toEqual({ admitted: 5, serves: true, warnings: [] })
    expect(readdirSync(temporary)).toEqual([`sluice-${uid}`])
    expect(statSync(join(temporary, `sluice-${uid}`))).toMatchObject({ uid, mode: 0o40700 })
  })

  const [first, second] = [`sluice-${USER}`, `sluice-${USER}-1`]
  it.each<[string, readonly ['mkdir' | 'rmdir', string][]]>([
    [
      'takes the first folder and gives it back',
      [
        ['mkdir', first],
        ['rmdir', first],
        ['mkdir', first],
      ],
    ],
    [
      'takes the second folder too, and gives both back',
      [
        ['mkdir', first],
        ['rmdir', first],
        ['mkdir', second],
      ],
    ],
    [
      'comes after the first process',
      [
        ['rmdir', first],
        ['mkdir', first],
        ['mkdir', second],
      ],
    ],
  ])('has one server and admits exactly the limit of four processes while a stranger %s', async (_, acts) => {
    const seen: Seen[] = []
    for (const act of [...acts, undefined]) {
      if (act) stranger(...act)
      seen.push(await start()())
    }
    expect(seen.filter(({ serves }) => serves)).toHaveLength(1)
    expect(seen.map(({ admitted }) => admitted)).toEqual([5, 5, 0, 0])
  })

  it('has one server of four processes that start while a stranger makes and removes folders', async () => {
    const flips = setInterval(() => {
      for (const name of [first, second]) if (!stranger('mkdir', name)) stranger('rmdir', name)
    }, 5)
    const seen = await Promise.all([start(), start(), start(), start()].map((call) => call()))
    clearInterval(flips)
    expect(seen.filter(({ serves }) => serves)).toHaveLength(1)
    expect(seen.reduce((sum, { admitted }) => sum + admitted, 0)).toBe(10)
  })

  it('names the stranger in a warning', async () => {
    stranger('mkdir', first)
    const { warnings } = await start()()
    const [taken, home] = [join(temporary, first), join(temporary, second)]
    expect(warnings).toEqual([
      `the folder of a machineStore must be a directory of this user with mode 0700, got "${taken}", which belongs to the ` +
        `user ${STRANGER}: the processes of this user meet in ${home}`,
    ])
  })

  it('does not start where a stranger has all folders', async () => {
    for (let i = 0; i < 10; i++) stranger('mkdir', i === 0 ? first : `${first}-${i}`)
    await expect(start()()).rejects.toThrow(
      `got "${join(temporary, first)}", which belongs to the user ${STRANGER}`,
    )
  })
})

import { type Address, command, startCluster, startRedis } from '@sluice/harness/redis'
import { readPolicies } from '@sluice/policies'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { type ActRequest, explained, planAct } from '../src/acts/act.js'
import { openStore } from '../src/acts/open-store.js'
import { Site } from '../src/acts/site.js'

jest.setTimeout(300_000)

/** The line of docs/operations.md for a user, as its rules. */
function rulesOf(user: string): string[] {
  const page = readFileSync(resolve(__dirname, '../../../docs/operations.md'), 'utf8')
  return new RegExp(`^user ${user} (.*)$`, 'm').exec(page)![1]!.replace('CHANGE-ME', 'p').split(' ')
}

const window = '1d'
const { limiters } = readPolicies(
  JSON.stringify({
    limiters: Object.fromEntries(
      ['slidingLog', 'gcra', 'fixedWindow', 'slidingWindow', 'tokenBucket', 'leakyBucket'].map(
        (algorithm) => [
          algorithm,
          {
            policies: [{ algorithm, limit: 5, window }],
            plans: {
              more: [
                { algorithm, limit: 9, window },
                { algorithm: 'gcra', limit: 9, window },
              ],
            },
          },
        ],
      ),
    ),
  }),
)

/** Has each limiter count calls and reservations of a key, and a record of another, as processes do. */
async function consumed(url: string): Promise<void> {
  const site = new Site(await openStore(url, {}), limiters)
  for (const limits of limiters)
    for (const limiter of site.limitersOf(limits)) {
      await limiter.consume('k')
      // One that is open, and one that has ended.
      for (const ttl of limiter.reserves ? (['1h', 1] as const) : [])
        await limiter.reserve('k', { cost: 1, ttl })
      await limiter.block('other', '1h', WHO)
    }
  await site.close()
}

const WHO = { reason: 'r', by: 'b' }
const ACTS: readonly ActRequest[] = [
  { act: 'block', duration: '1h', ...WHO },
  { act: 'unblock', ...WHO },
  { act: 'exempt', duration: '1h', ...WHO },
  { act: 'remove', ...WHO },
  { act: 'reset', ...WHO },
]

/** Reads all that commands read, and carries the acts out. */
async function use(url: string, acts: readonly ActRequest[]): Promise<void> {
  const site = new Site(await openStore(url, {}), limiters)
  try {
    for (const limits of limiters) {
      const own = site.limitersOf(limits)
      await explained(own, 'k')
      for (const request of acts) await (await planAct(own, 'k', request)).carryOut()
    }
    for await (const row of site.blocked(new Map())) void row
    await site.opened.store.board!('top-keys').read()
  } finally {
    await site.close()
  }
}

/** What the servers have refused since their logs were cleared. */
async function refusals(nodes: readonly Address[]): Promise<string[]> {
  const logs = await Promise.all(nodes.map((node) => command<string[][]>(node, 'ACL', 'LOG')))
  return logs
    .flat()
    .map((entry) => `${entry[entry.indexOf('reason') + 1]}: ${entry[entry.indexOf('object') + 1]}`)
}

it.each<[user: string, acts: readonly ActRequest[]]>([
  ['sluice-read', []],
  ['sluice-act', ACTS],
])('%s of docs/operations.md may do what it needs, and needs each permission', async (user, acts) => {
  const [server, cluster] = await Promise.all([startRedis(), startCluster()])
  const nodes = [server, ...cluster.masters]
  const places = [server, cluster.masters[0]!].map(({ host, port }) => `${host}:${port}`)
  /** What goes wrong for the user under these rules. */
  const problems = async (rules: readonly string[]): Promise<string[]> => {
    for (const place of places) await consumed(`redis://${place}`)
    for (const node of nodes) {
      await command(node, 'ACL', 'SETUSER', user, 'reset', ...rules)
      await command(node, 'ACL', 'LOG', 'RESET')
      await command(node, 'SCRIPT', 'FLUSH')
    }
    const used = places.map((place) => use(`redis://${user}:p@${place}`, acts))
    const failures = (await Promise.allSettled(used)).filter(({ status }) => status === 'rejected')
    return [
      ...failures.map((each) => String((each as PromiseRejectedResult).reason)),
      ...(await refusals(nodes)),
    ]
  }
  const rules = rulesOf(user)
  const wrong = await problems(rules)
  for (const rule of rules.filter((each) => each.startsWith('+')))
    if ((await problems(rules.filter((each) => each !== rule))).length === 0)
      wrong.push(`${rule} is not needed`)
  const { host, port } = server
  await problems(rules)
  const [writing] = await Promise.allSettled([use(`redis://${user}:p@${host}:${port}`, ACTS)])
  expect(writing.status).toBe(acts.length > 0 ? 'fulfilled' : 'rejected')
  await Promise.all([server.stop(), cluster.stop()])
  expect(wrong).toEqual([])
})

import { createLimiter, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { onSources } from '@sluice/harness/processes'
import { type Address, command, pipeline, startCluster, startProxy, startRedis } from '@sluice/harness/redis'
import { everyAlgorithm, isCalendar } from '../every-algorithm.js'
import { type PolicySpec, policyOf } from '../policy-spec.js'
import { everyOperation } from '../every-operation.js'
import { type Fleet, startFleet } from '../fleet.js'
import { clients, type Login } from '../logged-in.js'
import type { Outcome, Row } from '../row.js'
import type { FirstOutage, LoginTo } from '../workers/first-outage.js'

/** The user that docs/operations.md makes may do what Sluice and its clients do, and nothing else. */
export const row: Row = { number: 17, fault: 'least privilege', warnings: ['STORE_DEGRADED'], run: restrict }

const user = { username: 'sluice', password: 'secret' }

/** More than half a second takes: the seconds count from the first answer, which may never come. */
const MOST_CALLS = 50_000

const FORBIDDEN = [
  ['FLUSHALL'],
  ['KEYS', '*'],
  ['CONFIG', 'GET', '*'],
  ['SCRIPT', 'FLUSH'],
  ['EVAL', "return redis.call('GET', KEYS[1])", 1, 'session:1'],
  ['EVAL', "return redis.call('KEYS', '*')", 1, 'sluice:1'],
]

/**
 * Gives a user of Redis only the permissions that the docs list. Passes if everything works, and nothing works any more
 * without any one of them. `share` is the part of the full load, 0 to 1.
 */
async function restrict(share: number): Promise<Outcome> {
  const [server, cluster] = await Promise.all([startRedis(), startCluster()])
  // The only process that finds no other client package, so that its connections are made with node-redis.
  const fleet = await startFleet({ missing: ['ioredis', 'iovalkey'], environments: [{}] })
  const login = { user, server, nodes: cluster.masters }
  const rules = documentedRules()
  const permissions = rules.filter((rule) => rule.startsWith('+'))
  const leftOut = permissions.slice(0, Math.ceil(share * permissions.length))

  await grant(login, rules)
  const wrong = [
    ...(await problemsOf(login, fleet, '10s')),
    ...(await notRefused(server)),
    ...(await notHeard()),
  ]
  for (const permission of leftOut) {
    const others = rules.filter((rule) => rule !== permission)
    await grant(login, others)
    if ((await problemsOf(login, fleet, '1s')).length === 0) wrong.push(`${permission} is not needed`)
  }
  await fleet.end()
  await Promise.all([server.stop(), cluster.stop()])
  return {
    pass: wrong.length === 0,
    figure:
      `${permissions.length} permissions: every operation of every algorithm by ${Object.keys(clients).length} ` +
      `kinds of client, ${FORBIDDEN.length} other commands and other keys refused; ${leftOut.length} permissions ` +
      `left out one at a time, each is needed${wrong.length === 0 ? '' : `; wrong: ${wrong.join('; ')}`}`,
  }
}

/**
 * Kinds of client whose first failure is not that the password is wrong, and that is not heard once or shows the password.
 * A log-in takes longer than a deadline of default length.
 */
async function notHeard(): Promise<string[]> {
  const server = await startRedis()
  await command(server, 'CONFIG', 'SET', 'requirepass', 'another')
  const proxy = await startProxy(server)
  proxy.latency(LOGIN_MS / 2)
  const to: LoginTo = { host: proxy.host, port: proxy.port, username: 'sluice', password: WRONG }
  const wrong = await Promise.all(
    UNHEARD.map(async ([kind, client]) => {
      const missing = PACKAGES.filter((name) => name !== client)
      const env = { ...process.env, SLUICE_MISSING: missing.join() }
      const args = [...onSources(), FIRST_OUTAGE, kind, JSON.stringify(to)]
      const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env, timeout: 20_000 })
      const { events, reasons } = JSON.parse(stdout) as FirstOutage
      const lines = stderr.split('\n').filter((line) => line !== '' && !line.startsWith('(Use `node'))
      const isRight =
        events.join() === 'forbidden by WRONGPASS' &&
        reasons.every((reason) => reason === 'forbidden') &&
        lines.length === 1 &&
        !(stdout + stderr).includes(WRONG)
      const seen = [...events, ...reasons, ...lines].join(', ')
      return isRight ? [] : [`${kind} by ${client} with a wrong password: ${seen}`]
    }),
  )
  await proxy.close()
  await server.stop()
  return wrong.flat()
}

const FIRST_OUTAGE = 'packages/faults/src/workers/first-outage.ts'
const LOGIN_MS = 80
const WRONG = 'wrong-horse'
const PACKAGES = ['ioredis', 'iovalkey', 'redis']
/** Kinds of connection, and the only package that the process finds. */
const UNHEARD = [
  ['own', 'ioredis'],
  ['own', 'iovalkey'],
  ['own', 'redis'],
  ['ioredis', 'ioredis'],
  ['iovalkey', 'iovalkey'],
  ['iovalkey without ready check', 'iovalkey'],
  ['node-redis', 'redis'],
] as const

/** The permissions in the line `user sluice ...` of the page. */
function documentedRules(): string[] {
  const line = /^```\w*\nuser sluice (.*)$/m.exec(readFileSync('docs/operations.md', 'utf8'))?.[1]
  if (line === undefined) throw new Error("docs/operations.md has no block that begins with 'user sluice'")
  return line.split(' ')
}

/** Gives the user exactly these permissions on every server, and clears the logs of refusals and the scripts. */
async function grant({ server, nodes }: Login, rules: readonly string[]): Promise<void> {
  const own = rules.map((rule) => (rule.startsWith('>') ? `>${user.password}` : rule))
  for (const node of [server, ...nodes]) {
    await command(node, 'ACL', 'SETUSER', user.username, 'reset', ...own)
    await command(node, 'ACL', 'LOG', 'RESET')
    await command(node, 'SCRIPT', 'FLUSH')
  }
}

/** What is waited for ends within the row: no window of the calendar does. */
const SHORT = everyAlgorithm(6).filter(([, spec]) => !isCalendar(spec))

/** The calls that fail for the user, and what was refused to its clients though nothing failed by it. */
async function problemsOf(login: Login, fleet: Fleet, deadline: '1s' | '10s'): Promise<string[]> {
  const kinds = Object.keys(clients)
  const attempts = kinds.map(async (kind) => {
    const { store, end } = await clients[kind]!(login)
    try {
      await Promise.all(
        SHORT.map(([title, [factory, options]]) =>
          everyOperation(
            store,
            policyOf([factory, { ...options, window: '300ms' }]),
            `${kind}, ${title}`,
            deadline,
          ),
        ),
      )
    } finally {
      await end()
    }
  })
  const outcomes = await Promise.allSettled(attempts)
  const failed = outcomes.flatMap((outcome, i) =>
    outcome.status === 'rejected' ? [`${kinds[i]}: ${String(outcome.reason)}`] : [],
  )
  return [...failed, ...(await nodeRedisProblems(login, fleet)), ...(await refusals(login))]
}

/** A connection made with node-redis, for longer than it takes to send its first PING. */
async function nodeRedisProblems(
  { server: { host, port } }: Login,
  fleet: Fleet,
): Promise<readonly string[]> {
  const redis = { host, port, ...user }
  const policies: PolicySpec[] = [['gcra', { limit: 6, window: '300ms' }]]
  try {
    const job = { redis, key: 'node-redis', policies, callers: 1, seconds: 0.5, calls: MOST_CALLS }
    const [result] = await fleet.run([job])
    return result!.errors
  } catch (error) {
    return [String(error)]
  }
}

/** What the servers have refused the user since then, by their own logs. */
async function refusals({ server, nodes }: Login): Promise<string[]> {
  const logs = await Promise.all([server, ...nodes].map((node) => command<string[][]>(node, 'ACL', 'LOG')))
  return logs
    .flat()
    .map((entry) => `refused by ${entry[entry.indexOf('reason') + 1]}: ${entry[entry.indexOf('object') + 1]}`)
}

/** The commands that the user must not be able to give, and keys of others, that the server lets it use all the same. */
async function notRefused(server: Address): Promise<string[]> {
  const [, ...replies] = await pipeline(server, [['AUTH', user.username, user.password], ...FORBIDDEN])
  const given = FORBIDDEN.filter((_, i) => !(replies[i] instanceof Error))
  const store = redisStore({ host: server.host, port: server.port, ...user }, { prefix: 'other' })
  const policies = [gcra({ limit: 1, window: '1s' })]
  const limiter = createLimiter({ name: 'l', policies, store, deadline: '10s', onStoreError: 'allow' })
  const { degraded } = await limiter.consume('k')
  await store.close()
  return [
    ...given.map((words) => `${words.join(' ')} is not refused`),
    ...(degraded === 'forbidden' ? [] : [`a limiter under another prefix is degraded by ${degraded}`]),
  ]
}

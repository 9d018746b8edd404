import type { Clock } from '../../src/values/clock.js'
import { WeakValues } from '../../src/values/weak-values.js'
import type { RedisKey } from '../../src/stores/redis/redis-connection.js'
import { composeScript } from '../../src/stores/redis/script/compose.js'
import { GroupCommit } from '../../src/stores/redis/group-commit.js'
import { RedisKeyspace, SmallestLimits } from '../../src/stores/redis/keyspace.js'
import { ScriptRunner } from '../../src/stores/redis/script/runner.js'
import { packRequest, REDIS_TIME, unpackAnswer } from '../../src/stores/redis/script/wire.js'
import { guard } from '../../src/leases/leased-store.js'
import type { Keyspace, Store } from '../../src/stores/store.js'
import type { LuaRedis } from './lua-redis.js'

/** The Redis store's keyspaces on plain Lua. `clock` is what TIME says there, and what keys expire by. */
export function luaStore(redis: LuaRedis, { clock }: { readonly clock: Clock }): Store {
  const connection = {
    evalsha: () => Promise.reject(new Error('NOSCRIPT No matching script.')),
    eval: async (script: string, keys: readonly RedisKey[], args: readonly Buffer[]) => {
      const calls = keys.map(
        (key, i) => [Buffer.from(key as string), Buffer.from(args[i] ?? args.at(-1)!)] as const,
      )
      return redis.runAll(script, clock(), calls)
    },
    isCluster: false,
    address: 'memory',
    trouble: () => undefined,
    connect: () => undefined,
    inOneWrite: (send: () => void) => send(),
    isReady: () => true,
    replays: false,
    close() {},
  }
  const runner = new ScriptRunner(connection, () => {})
  const smallestLimits = new WeakValues<SmallestLimits>()
  const keyspace: Store['keyspace'] = (name, policies, report, penalty) => {
    const group = new GroupCommit(runner, composeScript(policies, penalty))
    return new RedisKeyspace({
      listId: '',
      together: () => undefined,
      policies,
      penalty,
      keyspace: name,
      group: () => group,
      tagOf: undefined,
      smallestLimits: smallestLimits.get(
        `${name} ${policies.map(({ shape }) => shape).join()}`,
        () => new SmallestLimits(),
      ),
      clock: undefined,
      report,
    })
  }
  return { guard, keyspace, now: clock, close() {} }
}

let stores = 0

/** A store that answers `consume` at once and knows nothing else: what the tables of the algorithms need. */
export function tableStore(redis: LuaRedis, { clock }: { readonly clock: Clock }): Store {
  const key = Buffer.from(`table ${++stores}`)
  const keyspace: Store['keyspace'] = (_, policies) => {
    const script = composeScript(policies)
    const decide: Keyspace['decide'] = (operation, caller, cost) => {
      const argument = packRequest({ operation, policies, cost, around: clock() }, REDIS_TIME, 1)
      const request = { operation, policies, cost }
      return unpackAnswer(redis.run(script, clock(), key, argument), request, caller)
    }
    return { policies, decide } as Keyspace
  }
  return { local: true, keyspace, now: clock, close() {} }
}

import { createLimiter, gcra } from '@sluice/core'
import { machineStore } from '@sluice/machine'

/*
 * A program for users.test.ts: `users.ts UID UMASK CALLS` becomes that user, opens the default store in the folder that TMPDIR
 * names, and calls once a line comes. It prints a line with what it has seen, and lives until its input ends.
 */

const CALLS = 5
const [uid, umask] = process.argv.slice(2).map(Number)
const warnings: string[] = []
process.on('warning', ({ name, message }) => void (name === 'SluiceWarning' && warnings.push(message)))

process.umask(umask!)
if (process.getuid!() !== uid) {
  process.setgid!(uid!)
  process.setuid!(uid!)
}
const store = machineStore({ name: 'users' })
const policies = [gcra({ limit: 10, window: '1d' })]
const limiter = createLimiter({ name: 'api', policies, store, deadline: '10s', onStoreError: 'throw' })

async function callAll(): Promise<void> {
  await store.ready()
  const decisions = await Promise.all(Array.from({ length: CALLS }, () => limiter.consume('k')))
  const admitted = decisions.filter(({ allowed }) => allowed).length
  const serves = store.keyspace('other', policies, () => {}).answersAtOnce === true
  console.log(JSON.stringify({ admitted, serves, warnings }))
}

process.stdin.once('data', () => void callAll())

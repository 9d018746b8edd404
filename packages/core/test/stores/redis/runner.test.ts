import type { RedisConnection, ScriptReply } from '../../../src/stores/redis/redis-connection.js'
import { ScriptRunner } from '../../../src/stores/redis/script/runner.js'

/** A connection that notes how it was asked, and answers when the test says so. */
function connection() {
  const sent: { how: 'eval' | 'evalsha'; answer(reply: ScriptReply): void; fail(error: Error): void }[] = []
  const ask = (how: 'eval' | 'evalsha') => () =>
    new Promise<ScriptReply>((answer, fail) => void sent.push({ how, answer, fail }))
  const made = {
    evalsha: ask('evalsha'),
    eval: ask('eval'),
    inOneWrite: (send: () => void) => send(),
    isReady: () => true,
    isCluster: false,
    address: 'memory',
    trouble: () => undefined,
    connect: () => undefined,
    replays: false,
    close() {},
  }
  return { sent, how: () => sent.map(({ how }) => how), connection: made as RedisConnection }
}

const answer = Buffer.from('answer')
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('a script', () => {
  it('is sent as text until a server has run it, so that calls in flight keep their order', async () => {
    const { connection: made, sent, how } = connection()
    const runner = new ScriptRunner(made, () => {})
    const run = () => runner.run('return 1', 'key', Buffer.of())
    const first = [run(), run()]
    expect(how()).toEqual(['eval', 'eval'])
    for (const each of sent) each.answer(answer)
    expect((await Promise.all(first)).map(String)).toEqual(['answer', 'answer'])
    void run()
    expect(how().at(-1)).toBe('evalsha')
  })

  it('is sent as text again once a server does not have it', async () => {
    const { connection: made, sent, how } = connection()
    const runner = new ScriptRunner(made, () => {})
    const run = () => runner.run('return 1', 'key', Buffer.of())
    const first = run()
    sent[0]!.answer(answer)
    await first
    const lost = run()
    sent[1]!.fail(new Error('NOSCRIPT No matching script. Please use EVAL.'))
    await settled()
    void run()
    expect(how()).toEqual(['eval', 'evalsha', 'eval', 'eval'])
    sent[2]!.answer(answer)
    expect(String(await lost)).toBe('answer')
  })
})

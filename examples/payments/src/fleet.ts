import { memoryStore } from '@sluice/core'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { RedisServer } from './redis-server.js'
import { type Job, type News, work } from './worker.js'

/** All workers in this process, with one store in its memory. */
export async function workTogether(
  jobs: readonly Job[],
  tell: (news: News) => void,
  signal: AbortSignal,
): Promise<void> {
  const store = memoryStore()
  await Promise.all(jobs.map((job) => work(job, tell, signal, store)))
  await store.close()
}

/** A process for each worker; they meet in Redis. */
export async function workApart(
  jobs: readonly Job[],
  tell: (news: News) => void,
  signal: AbortSignal,
  redis: RedisServer,
): Promise<void> {
  const program = fileURLToPath(new URL('member.js', import.meta.url))
  const members = jobs.map((job) => fork(program, [String(redis.port), JSON.stringify(job)]))
  const exits = members.map((member) => once(member, 'exit'))
  for (const member of members) member.on('message', (news) => tell(news as News))
  signal.addEventListener('abort', () => {
    for (const member of members) if (member.connected) member.send('stop')
  })
  await Promise.all(exits)
}

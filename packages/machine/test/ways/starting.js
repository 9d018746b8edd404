// The ways in which the processes of a service are started on one machine.
import { execFile, fork, spawn } from 'node:child_process'
import cluster from 'node:cluster'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'

const SERVICE = join(import.meta.dirname, 'service.js')

/** @typedef {Record<string, string>} Environment */
/** Starts processes, and returns what removes what they do not end themselves. @typedef {(env: Environment, count: number) => Promise<() => unknown>} Start */

/** @type {Readonly<Record<string, Start>>} */
export const ways = {
  fork: each((env) => fork(SERVICE, { env: { ...process.env, ...env } })),
  'node:cluster': each(forkWorker),
  'node:cluster, one worker serves': each((env, i) => forkWorker({ ...env, SERVE: String(i === 0) })),
  'worker threads': each((env) => new Worker(SERVICE, { env: { ...process.env, ...env } })),
  // As of systemd or a shell: in sessions of their own, without a channel to whoever started them.
  'plain services': each((env) =>
    spawn(process.execPath, [SERVICE], {
      env: { ...process.env, ...env },
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit'],
    }),
  ),
  'PM2, fork mode': byPm2('fork'),
  'PM2, cluster mode': byPm2('cluster'),
}

/**
 * @param {(env: Environment, i: number) => unknown} startOne
 * @returns {Start}
 */
function each(startOne) {
  return async (env, count) => {
    for (let i = 0; i < count; i++) startOne(env, i)
    return () => {}
  }
}

/** @param {Environment} env */
function forkWorker(env) {
  cluster.setupPrimary({ exec: SERVICE })
  cluster.fork(env)
}

/**
 * PM2 as its users start it, with a daemon, sockets and logs of its own in a folder that is removed.
 * @param {'fork' | 'cluster'} mode
 * @returns {Start}
 */
function byPm2(mode) {
  return async (env, instances) => {
    const home = mkdtempSync(join(tmpdir(), 'sluice-pm2-'))
    const program = createRequire(import.meta.url).resolve('pm2/bin/pm2')
    /** @param {string[]} args */
    const pm2 = (...args) =>
      promisify(execFile)(process.execPath, [program, ...args], {
        env: { ...process.env, PM2_HOME: home, PM2_DISABLE_VERSION_CHECK: 'true' },
        timeout: 60_000,
      })
    const apps = [
      { name: 'service', script: SERVICE, exec_mode: mode, instances, env, autorestart: false, pmx: false },
    ]
    writeFileSync(join(home, 'apps.json'), JSON.stringify({ apps }))
    const end = async () => {
      await pm2('kill')
      rmSync(home, { recursive: true })
    }
    await pm2('start', join(home, 'apps.json')).catch(async (error) => {
      await end()
      throw error
    })
    return end
  }
}

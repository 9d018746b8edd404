// The processes that are measured.
import { fork } from 'node:child_process'
import { once } from 'node:events'

/**
 * Starts a contender's process.
 * @param {string} name
 * @param {number} redisPort
 */
export async function startService(name, redisPort = 0) {
  const file = new URL('server.js', import.meta.url)
  const child = fork(file, [name, String(redisPort)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text) => (said = (said + text).slice(-4000)))
  /** @type {string | undefined} */
  let ended
  const gone = new Promise((resolve) => {
    child.on('exit', (code, signal) => {
      ended = `${signal ?? `exit code ${code}`}: ${/^\w*Error.*$/m.exec(said)?.[0] ?? 'no word of why'}`
      resolve(undefined)
    })
  })
  const [port] = await Promise.race([once(child, 'message'), gone.then(() => [])])
  if (port === undefined) throw new Error(`${name} did not start: ${ended}\n${said}`)
  return {
    port: Number(port),
    /** Why the process ended, if it did by itself. */
    ended: () => ended,
    async stop() {
      child.kill('SIGKILL')
      await gone
    },
  }
}

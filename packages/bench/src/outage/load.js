// Requests at an even pace, whatever becomes of those before: what the many users of a service do to it.
import { Agent, get } from 'node:http'
import { CALLER } from './contenders.js'

/**
 * @typedef {object} Answer
 * @property {number} sentAt By performance.now().
 * @property {number} tookMs As long as the patience where there was none.
 * @property {number | undefined} status Undefined: no answer within the patience, or no connection.
 * @property {boolean} over Whether the caller is over its limit.
 */

/** A caller's patience, in milliseconds. */
export const PATIENCE_MS = 5000

const PER_SECOND = 200
/** How often the bare server is asked that runs beside. */
const BARE_PER_SECOND = 50
/** Of these, so many are of callers over their limit, who share them. */
const OVER_PER_SECOND = 40
const OVER_CALLERS = 4
/** So many that none comes near its limit. */
const CALLERS = 1000

export class Load {
  /** @type {Answer[]} */
  answers = []
  /** How late requests were sent: what this process itself adds, in milliseconds. @type {number[]} */
  lateMs = []
  /** Of a server that limits nothing: what the machine takes. @type {Omit<Answer, 'over'>[]} */
  bare = []
  #agent = new Agent({ keepAlive: true, maxFreeSockets: 10_000 })
  #port
  #barePort
  #began = performance.now()
  #sent = 0
  #bareSent = 0
  /** @type {Set<Promise<unknown>>} */
  #unanswered = new Set()
  #timer

  /**
   * @param {number} port
   * @param {number} barePort
   */
  constructor(port, barePort) {
    this.#port = port
    this.#barePort = barePort
    this.#timer = setInterval(() => this.#sendDue(), 2)
  }

  /** Requests without an answer yet. */
  get waiting() {
    return this.#unanswered.size
  }

  /** Ends the load, and waits for those who still wait. */
  async stop() {
    clearInterval(this.#timer)
    await Promise.all(this.#unanswered)
    this.#agent.destroy()
  }

  /**
   * One request. Never rejects.
   * @param {string} caller
   * @returns {Promise<Omit<Answer, 'over'>>}
   */
  ask(caller, port = this.#port) {
    const sentAt = performance.now()
    const asked = new Promise((resolve) => {
      const settle = (/** @type {number | undefined} */ status) => {
        clearTimeout(timer)
        const tookMs = status === undefined ? PATIENCE_MS : performance.now() - sentAt
        resolve({ sentAt, tookMs, status })
      }
      const headers = { [CALLER]: caller }
      const request = get({ host: '127.0.0.1', port, agent: this.#agent, headers }, (response) => {
        response.on('error', () => settle(undefined))
        response.on('end', () => settle(response.statusCode))
        response.resume()
      })
      request.on('error', () => settle(undefined))
      const timer = setTimeout(() => {
        settle(undefined)
        request.destroy()
      }, PATIENCE_MS)
    })
    this.#unanswered.add(asked)
    void asked.then(() => this.#unanswered.delete(asked))
    return asked
  }

  #sendDue() {
    const now = performance.now()
    while (this.#began + (this.#bareSent * 1000) / BARE_PER_SECOND <= now) {
      this.#bareSent++
      void this.ask('anybody', this.#barePort).then((answer) => this.bare.push(answer))
    }
    for (;;) {
      const dueAt = this.#began + (this.#sent * 1000) / PER_SECOND
      if (dueAt > now) return
      this.lateMs.push(now - dueAt)
      void this.#send(this.#sent++)
    }
  }

  /** @param {number} i */
  async #send(i) {
    const over = i % (PER_SECOND / OVER_PER_SECOND) === 0
    const turn = Math.floor((i * OVER_PER_SECOND) / PER_SECOND)
    const caller = over ? `over-${turn % OVER_CALLERS}` : `caller-${i % CALLERS}`
    this.answers.push({ ...(await this.ask(caller)), over })
  }
}

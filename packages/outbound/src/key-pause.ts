import { nowMs } from '@sluice/core/internal'
import type { Verdict } from './verdict.js'

/** How long to wait after a reply, in milliseconds. */
export interface Wait {
  /** For all calls of the key. */
  readonly keyMs: number
  /** For this call alone. */
  readonly aloneMs: number
  /** Whether the other side stated the time, so that a retry after it takes nothing from the budget. */
  readonly isStated: boolean
}

/**
 * The pauses of one key that the other side asked for, on the clock of `nowMs`, and the way back to the full rate.
 * A 429 that states no wait pauses the key; any other refusal does so only as the second in a row without a success between,
 * because 1 % of single 503s would cost a third of the rate otherwise. Of calls that were under way together it is the third:
 * among a thousand a second two single ones meet often. Such pauses take a second, doubled up to a minute.
 * From the second refusal in a row on, a stated wait of less than 100 ms counts as none that is stated.
 * After a pause one call goes out, and the others wait for its answer. A call that gets none is followed by another, as late
 * as after a refusal. Then the number of calls doubles with each round of answers, or with time where those are slow.
 */
export class KeyPause {
  #begunAt = -Infinity
  #until = -Infinity
  #awaitsResumption = false
  /** The refusals since the other side's last success, and when the first of them came. */
  #refusals = 0
  #firstRefusedAt = 0
  /** Waits in a row of which the other side did not state the length; the next success ends the row. */
  #backOffs = 0
  #isRecovering = false
  /** Calls that went out, and that may go out, since the pause or since the first answer after it. */
  #sent = 0
  #allowed = 0
  /** When another call may go out although there is no answer yet. */
  #probeAt = Infinity
  /** When the first answer came. */
  #firstAnswerAt: number | undefined

  /** Milliseconds until the pause ends. */
  get leftMs(): number {
    return Math.max(0, this.#until - nowMs())
  }

  /**
   * Returns how many more calls may go out before a further answer comes; during a pause, how many at its end. A single call
   * goes out after a pause. When it has got no answer in time (`#probeAt`), this allows one more, and so on, ever later up to a
   * minute. From the first answer on (`#firstAnswerAt`), the number doubles every 250 ms, or grows by two with each answer where
   * that is faster. After ten doublings, and without a pause, it is Infinity.
   */
  updateAllowance(): number {
    if (!this.#isRecovering) return Infinity
    const now = nowMs()
    if (this.#firstAnswerAt === undefined && now >= this.#probeAt) {
      this.#probeAt = Infinity
      this.#backOffs++
      this.#allowed++
    }
    const doublings = this.#firstAnswerAt === undefined ? 0 : (now - this.#firstAnswerAt) / DOUBLES_MS
    if (doublings > MOST_DOUBLINGS) {
      this.#isRecovering = false
      return Infinity
    }
    return Math.max(this.#allowed, Math.floor(2 ** doublings)) - this.#sent
  }

  /**
   * Milliseconds, at least 1, until time alone lets more calls go out than there are turns `booked`: before the first answer
   * after a pause until `#probeAt`, then until the next doubling. Infinity until the single call after a pause has gone out.
   */
  growsInMs(booked: number): number {
    const neededDoublings = Math.log2(this.#sent + booked + 1)
    const growsAt =
      this.#firstAnswerAt === undefined ? this.#probeAt : this.#firstAnswerAt + DOUBLES_MS * neededDoublings
    return Math.max(1, Math.ceil(growsAt - nowMs()))
  }

  /**
   * Counts a call that goes out. Before the first answer after a pause it sets when another may follow without one (`#probeAt`),
   * so that a call that is never answered does not hold up the key.
   */
  sent(): void {
    if (!this.#isRecovering) return
    this.#sent++
    if (this.#firstAnswerAt === undefined) this.#probeAt = nowMs() + this.#backOffMs()
  }

  /**
   * Counts the answer to an attempt that went out at `sentAt`, and returns who has to wait, and for how long, as the class
   * describes. A refusal that states no wait causes none if the key is paused already, or was paused after the attempt went out;
   * nor while the limit is searched for (`isSearched`), because the refusal lowers the limit instead.
   */
  countAnswer({ answer, pauseMs }: Verdict, sentAt: number, isSearched: boolean): Wait {
    const isRecent = sentAt >= this.#begunAt
    const isRefusal = answer === 'limited' || answer === 'overloaded'
    if (isRecent && answer === 'served') {
      this.#refusals = 0
      this.#backOffs = 0
    }
    if (this.#isRecovering && isRecent && !isRefusal && answer !== 'none') this.#grow()
    if (isRefusal) this.#refusals++
    if (isRefusal && this.#refusals === 1) this.#firstRefusedAt = nowMs()
    const wasUnderWayWithFirst = sentAt < this.#firstRefusedAt
    const refusalsToPause = wasUnderWayWithFirst ? 3 : 2
    const isSingle = answer === 'overloaded' && this.#refusals < refusalsToPause
    // An outage whose replies say "at once" would get as many calls as it can refuse.
    const isStated = !isRefusal || this.#refusals < 2 || Number(pauseMs) >= LEAST_STATED_MS
    if (isStated && pauseMs !== undefined) return { keyMs: pauseMs, aloneMs: 0, isStated: pauseMs > 0 }
    if (isSearched || !isRecent || this.leftMs > 0) return NO_WAIT
    const ms = this.#backOffMs()
    if (isSingle) return { ...NO_WAIT, aloneMs: ms }
    this.#backOffs++
    return { ...NO_WAIT, keyMs: ms }
  }

  /**
   * Begins a pause of `ms` milliseconds, after which a single call goes out first. Many replies report the same pause: this returns
   * false, and changes nothing, if the pause would end no later than the known one; or at most 50 ms later, if the attempt that got
   * the reply went out (`sentAt`) before the known pause began.
   */
  begin(ms: number, sentAt: number): boolean {
    const now = nowMs()
    const until = now + ms
    const knownUntil = sentAt < this.#begunAt ? this.#until + NEGLIGIBLE_MS : this.#until
    if (until <= knownUntil) return false
    this.#begunAt = now
    this.#until = until
    this.#awaitsResumption = this.#isRecovering = true
    this.#sent = 0
    this.#allowed = 1
    this.#probeAt = Infinity
    this.#firstAnswerAt = undefined
    return true
  }

  /** Returns whether the call that goes out now is the first since the pause of the key ended: true only once after each pause. */
  takeResumption(): boolean {
    if (!this.#awaitsResumption || this.leftMs > 0) return false
    this.#awaitsResumption = false
    return true
  }

  /** Allows two more calls, because one was answered. The first answer after a pause has the calls counted anew. */
  #grow(): void {
    if (this.#firstAnswerAt === undefined) this.#sent = this.#allowed = 0
    this.#firstAnswerAt ??= nowMs()
    this.#allowed += 2
  }

  /** Milliseconds to wait where no time is stated: a second, doubled each time up to a minute, less up to a quarter at random. */
  #backOffMs(): number {
    return Math.min(LONGEST_BACK_OFF_MS, 1000 * 2 ** this.#backOffs) * (0.75 + Math.random() / 4)
  }
}

export const NO_WAIT: Wait = { keyMs: 0, aloneMs: 0, isStated: false }
const LEAST_STATED_MS = 100
const NEGLIGIBLE_MS = 50
const LONGEST_BACK_OFF_MS = 60_000
/** The calls that may go out double in this time where answers take longer. After so many steps they are not counted. */
const [DOUBLES_MS, MOST_DOUBLINGS] = [250, 10]

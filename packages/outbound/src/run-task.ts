import { Attempts } from './attempts.js'
import type { CallTerms, CallQueue } from './call-queue.js'
import type { AttemptEnd } from './events.js'
import type { Admission } from './admission.js'
import { type TaskOutcome, outcomeOf, type Task } from './task.js'

/** Starts a task when it is its turn, and again as long as its verdicts ask for it. */
export async function runTask<T>(queue: CallQueue, terms: CallTerms, task: Task<T>): Promise<T> {
  const { key, cost, priority } = terms
  const { limiter } = queue
  const attempts = new Attempts(queue, terms)
  let admission = await attempts.next()
  for (;;) {
    const start = performance.now()
    const attempt = { limiter, key, cost, priority, attempt: attempts.count }
    queue.emit({ type: 'started', ...attempt })
    const outcome = await outcomeOf(task, admission)
    let again: boolean
    try {
      again = attempts.observe(task.judge(outcome, attempts.count))
    } catch (error) {
      admission.release()
      if ('value' in outcome) task.discard(outcome.value)
      throw error
    }
    const end = { ...attempt, runMs: performance.now() - start }
    if (!again) return settle(queue, outcome, task, admission, end)
    queue.emit({ type: 'retried', ...end })
    // Waits before the permit is released; otherwise the queue would be idle for a moment.
    const next = attempts.next()
    admission.release()
    if ('value' in outcome) task.discard(outcome.value)
    admission = await next
  }
}

function settle<T>(
  queue: CallQueue,
  outcome: TaskOutcome<T>,
  task: Task<T>,
  admission: Admission,
  end: AttemptEnd,
): T {
  if ('value' in outcome) {
    queue.emit({ type: 'done', ...end })
    try {
      return task.deliver(outcome.value, admission)
    } catch (error) {
      admission.release()
      task.discard(outcome.value)
      throw error
    }
  }
  queue.emit({ type: 'failed', ...end, error: outcome.error })
  admission.release()
  throw outcome.error
}

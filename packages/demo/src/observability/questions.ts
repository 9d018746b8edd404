import { paint } from '../terminal/paint.js'
import type { Prometheus, Sample } from './prometheus.js'

interface Question {
  readonly text: string
  readonly expression: string
  readonly show: (value: number) => string
}

const percent = (value: number): string => `${(100 * value).toFixed(0)} %`
const whole = (value: number): string => value.toFixed(0)
const milliseconds = (value: number): string => `${(1000 * value).toFixed(0)} ms`

/** In the order in which somebody asks them who was woken up. `RUN` is the time of the demo. */
const QUESTIONS: readonly Question[] = [
  {
    text: 'Was Redis deciding? Seconds in which it was not',
    expression: 'sum_over_time((1 - min(sluice_store_available))[RUN:500ms]) / 2',
    show: whole,
  },
  { text: 'Who decided instead', expression: 'sum by (decided_by) (sluice_decisions_total)', show: whole },
  {
    text: 'Who is limited, and by what',
    expression:
      'sum by (limiter, policy, reason) (sluice_decisions_total{result="denied"}) / on (limiter) group_left sum by (limiter) (sluice_decisions_total)',
    show: percent,
  },
  {
    text: 'How close to the limit: calls that left less than 10 %',
    expression:
      'sum by (limiter, policy) (sluice_policy_utilization_total{bucket="1"}) / sum by (limiter, policy) (sluice_policy_utilization_total)',
    show: percent,
  },
  {
    text: 'Which callers: denials by tier (the keys are below)',
    expression: 'sum by (limiter, tag) (sluice_tag_decisions_total{result="denied"})',
    show: whole,
  },
  {
    text: 'Who waits: 99 of 100 waits are shorter than',
    expression: 'histogram_quantile(0.99, sum by (le, name) (sluice_acquire_duration_seconds_bucket))',
    show: milliseconds,
  },
  {
    text: 'Would 6 orders a second in place of 5 help? Denied then',
    expression:
      'sum by (limiter) (sluice_decisions_total{result=~"denied|would_deny",limiter=~"orders.*"}) / sum by (limiter) (sluice_decisions_total{limiter=~"orders.*"})',
    show: percent,
  },
]

/** Asks Prometheus every question about the last `seconds`. Returns the answers as text, and how many questions had none. */
export async function answers(
  prometheus: Prometheus,
  seconds: number,
): Promise<{ text: string; missing: number }> {
  const lines: string[] = []
  let missing = 0
  for (const { text, expression, show } of QUESTIONS) {
    const samples = await prometheus.query(expression.replace('RUN', `${seconds}s`))
    if (samples.length === 0) missing++
    lines.push(paint('bold', text), ...samples.map((sample) => line(sample, show)))
  }
  return { text: lines.join('\n'), missing }
}

/** One value of an answer as a line: the number as the question shows it, and the labels' values that it is of. */
function line({ labels, value }: Sample, show: (value: number) => string): string {
  const names = Object.values(labels).join(' ')
  return `  ${show(value).padStart(8)}  ${names}`
}

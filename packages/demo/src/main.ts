import { CannotRun, type Demo } from './demo.js'
import { express } from './express/demo.js'
import { fleet } from './fleet/demo.js'
import { UsageError } from './options.js'
import { observability } from './observability/demo.js'
import { payments } from './payments/demo.js'
import { stopSignal } from './stop-signal.js'

const DEMOS = new Map<string, Demo>(Object.entries({ express, fleet, observability, payments }))

const USAGE = `Usage: npm run demo -- SUBJECT [options]

  express        an Express server under limits, and HTTP traffic to it
  fleet          four processes that share one limit in Redis
  observability  an Express server, Redis and Prometheus, and an outage
  payments       workers that call a provider under its limits

With --help after a subject its options are listed.`

process.exitCode = await main(process.argv.slice(2))

/** Returns the exit code: 0 when every promise held, 1 when one did not or the demo could not run, 2 for misuse. */
async function main([subject = '--help', ...args]: string[]): Promise<number> {
  const demo = DEMOS.get(subject)
  if (!demo) return explain(USAGE, subject === '--help' ? undefined : `There is no demo '${subject}'`)
  if (args.some((arg) => arg === '--help' || arg === '-h')) return explain(demo.usage)
  try {
    return (await demo.run(args, stopSignal())) ? 0 : 1
  } catch (error) {
    if (error instanceof UsageError) return explain(demo.usage, error.message)
    if (!(error instanceof CannotRun)) throw error
    console.error(error.message)
    return 1
  }
}

/** Prints how a command is used, after what was wrong with the arguments if anything was. Returns the exit code: 2 then, else 0. */
function explain(usage: string, misuse?: string): number {
  if (misuse === undefined) console.log(usage)
  else console.error(`${misuse}\n\n${usage}`)
  return misuse === undefined ? 0 : 2
}

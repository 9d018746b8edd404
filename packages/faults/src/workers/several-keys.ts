import '@sluice/calendar'
import { openWholes, type WholeJob, type WholeResult } from '../scenarios/whole-calls.js'
import { serve } from './fleet-member.js'

/* One process of a fleet that calls on several keys, for row 39. */

let opened: Awaited<ReturnType<typeof openWholes>> | undefined

serve<WholeJob, WholeResult>(async (job) => {
  // Not before: the state of a machine's store is lost with the last process that has it open.
  await opened?.close()
  opened = await openWholes(job)
  return opened.call
})

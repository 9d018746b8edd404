import { fixedWindow } from '@sluice/core'
import { serve } from './fleet-member.js'

/** Windows as somebody may write them. */
export interface WindowsJob {
  readonly windows: readonly (number | `${number}ms`)[]
}

/** Answers with the warnings about windows, in a process that has warned of none before. */
serve<WindowsJob, readonly string[]>(async ({ windows }) => async () => {
  const warned: string[] = []
  process.emitWarning = (text: string | Error) => void warned.push(String(text))
  for (const window of windows) fixedWindow({ limit: 1, window })
  return warned
})

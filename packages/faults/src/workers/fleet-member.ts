/** The answer of a process of a fleet to a job (nothing: it is ready) and to 'go'. */
export interface FleetReply<Result = unknown> {
  readonly result?: Result
  readonly error?: string
}

/** A warning that such a process passes on, which writes none itself. */
export interface FleetWarning {
  readonly warning: string
  readonly options?: { readonly type: string; readonly code: string }
}

/**
 * Serves the process that forked this one, until that ends: `prepare` makes ready for a job, and what it returns does
 * the job, once every process of the fleet is ready.
 */
export function serve<Job, Result>(prepare: (job: Job) => Promise<() => Promise<Result>>): void {
  let perform: () => Promise<Result>
  const answer = async (message: 'go' | { readonly job: Job }): Promise<FleetReply<Result>> => {
    if (message === 'go') return { result: await perform() }
    perform = await prepare(message.job)
    return {}
  }
  process.on('message', (message: 'go' | { readonly job: Job }) => {
    answer(message).then(reply, (error: Error) => reply({ error: String(error.stack) }))
  })
  process.on('disconnect', () => process.exit())
  process.emitWarning = (warning: string | Error, options?: unknown) =>
    void process.send!({ warning: String(warning), options })
}

/** Sends an answer to the process that started this one. */
function reply(answer: FleetReply): void {
  process.send!(answer)
}

/** Aborts at Ctrl-C or SIGTERM, and when the reader of the output is gone, as after `npm start | head`. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController()
  const stop = (): void => controller.abort()
  // Each may come twice, since npm passes on what the terminal has already sent.
  process.on('SIGINT', stop).on('SIGTERM', stop)
  process.stdout.on('error', stop)
  return controller.signal
}

import { onBeforeUnmount, onMounted } from 'vue'

/**
 * A worker of a frame that may load nothing at all, not even scripts of this site, as the page itself must. It ends with the component
 * that uses it. Returns what sends it a message, at once or when it is there.
 * @param {string} script
 * @param {(data: any) => void} receive Called with each message, and with a `problem` where the worker has failed.
 * @param {() => void} [begin] Called once it is there.
 */
export function useWorker(script, receive, begin = () => {}) {
  const waiting = []
  let frame, worker
  onMounted(() => {
    frame = Object.assign(document.createElement('iframe'), { hidden: true, title: 'The worker' })
    frame.addEventListener('load', () => {
      const { Worker, Blob, URL } = frame.contentWindow
      worker = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })))
      worker.addEventListener('message', ({ data }) => receive(data))
      worker.addEventListener('error', ({ message = 'it ended' }) =>
        receive({ problem: `The worker of this page has failed: ${message}` }),
      )
      for (const message of waiting) worker.postMessage(message)
      begin()
    })
    frame.srcdoc = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; worker-src blob:">`
    document.body.append(frame)
  })
  onBeforeUnmount(() => {
    worker?.terminate()
    frame.remove()
  })
  return (message) => void (worker ? worker.postMessage(message) : waiting.push(message))
}

import { onBeforeUnmount, onMounted } from 'vue'

/**
 * A worker of a frame that may load nothing at all, not even scripts of this site, as the page itself must. It ends with the component
 * that uses it. `tell` sends a message, to a worker that is made for the first one; `end` ends that one, with all that it does.
 * @param {string} script
 * @param {(data: any) => void} receive Called with each message, and with a `problem` where the worker has failed.
 */
export function useWorker(script, receive) {
  let frame, worker
  let ended = 0
  const loaded = new Promise((resolve) =>
    onMounted(() => {
      frame = Object.assign(document.createElement('iframe'), { hidden: true, title: 'The worker' })
      frame.addEventListener('load', () => resolve(frame.contentWindow))
      frame.srcdoc = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; worker-src blob:">`
      document.body.append(frame)
    }),
  )
  onBeforeUnmount(() => frame.remove())

  function make({ Worker, Blob, URL }) {
    worker = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })))
    worker.onmessage = ({ data }) => receive(data)
    worker.onerror = ({ message = 'it ended' }) =>
      receive({ problem: `The worker of this page has failed: ${message}` })
    return worker
  }
  return {
    tell(message) {
      const before = ended
      void loaded.then((window) => before === ended && (worker ?? make(window)).postMessage(message))
    },
    end() {
      ended++
      if (worker) worker.onmessage = null // what it said before it ended comes later
      worker?.terminate()
      worker = undefined
    },
  }
}

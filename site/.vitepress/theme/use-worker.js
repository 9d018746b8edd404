import { onBeforeUnmount, onMounted } from 'vue'

/**
 * A worker of a frame that may load nothing at all, not even scripts of this site, as the page itself must. It ends with the component
 * that uses it. Returns what sends it a message.
 * @param {string} script
 * @param {(data: any) => void} receive
 * @param {() => void} [begin] Called once it is there.
 */
export function useWorker(script, receive, begin = () => {}) {
  let frame, worker
  onMounted(() => {
    frame = Object.assign(document.createElement('iframe'), { hidden: true, title: 'The worker' })
    frame.addEventListener('load', () => {
      const { Worker, Blob, URL } = frame.contentWindow
      worker = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })))
      worker.addEventListener('message', ({ data }) => receive(data))
      begin()
    })
    frame.srcdoc = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; worker-src blob:">`
    document.body.append(frame)
  })
  onBeforeUnmount(() => {
    worker?.terminate()
    frame.remove()
  })
  return (message) => worker?.postMessage(message)
}

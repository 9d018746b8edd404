/**
 * Starts a worker of a frame that may load nothing at all, not even scripts of this site, as the page itself must.
 * @param {HTMLIFrameElement} frame
 * @param {string} script
 * @param {(message: MessageEvent) => void} receive
 * @returns {Promise<Worker>}
 */
export function startWorker(frame, script, receive) {
  return new Promise((resolve) => {
    frame.addEventListener('load', () => {
      const { Worker, Blob, URL } = /** @type {typeof globalThis} */ (
        /** @type {unknown} */ (frame.contentWindow)
      )
      const worker = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })))
      worker.addEventListener('message', receive)
      resolve(worker)
    })
    frame.srcdoc = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; worker-src blob:">`
  })
}

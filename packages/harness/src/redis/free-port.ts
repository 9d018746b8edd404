import { createServer } from 'node:net'

/*
 * Ports below those that systems give to outgoing connections, so that a free one mostly stays free until its server
 * takes it; a Cluster's bus listens 10,000 above. Others may look at the same moment: a start that fails is tried again.
 */
const FIRST = 12_000
const COUNT = 10_000
export const BUS_OFFSET = 10_000

/** A loopback port that nothing listens on; nor `busOffset` above it, where a Cluster's bus does. */
export async function freePort(busOffset = 0): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = FIRST + Math.floor(Math.random() * COUNT)
    if ((await isFree(port)) && (busOffset === 0 || (await isFree(port + busOffset)))) return port
  }
  throw new Error(`found no free port between ${FIRST} and ${FIRST + COUNT}`)
}

/** Whether a server can listen on a port of loopback now. */
function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

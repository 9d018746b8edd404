// One process of a service on one machine: calls one limiter through a machine store, together with the others, and says how
// many calls were admitted. It lives until the connection to run.js ends, as the others may need its state.
import { createLimiter, gcra } from '@sluice/core'
import { machineStore } from '@sluice/machine'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

const { PORT, FOLDER: folder = '', NAME: name = '', LIMIT, CALLS, SERVE } = process.env

const serve = SERVE === undefined ? 'auto' : SERVE === 'true'
const store = machineStore({ name, folder, serve })
const policies = [gcra({ limit: Number(LIMIT), window: '1d' })]
const limiter = createLimiter({ name: 'api', policies, store, deadline: '10s', onStoreError: 'throw' })
// Where only another process may serve, that one may not be there yet.
while (
  await limiter.peek('k').then(
    () => false,
    () => true,
  )
)
  await pause(20)

const socket = connect(Number(PORT), '127.0.0.1')
socket.on('close', () => process.exit())
socket.write('ready\n')
await once(socket, 'data')
const decisions = await Promise.all(Array.from({ length: Number(CALLS) }, () => limiter.consume('k')))
socket.write(`${decisions.filter(({ allowed }) => allowed).length}\n`)

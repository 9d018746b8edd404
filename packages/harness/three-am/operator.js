// The operator of load.js: runs the commands on a store, one after the other, from one message to the next, and answers with how many.
// They run in this process, as starting one takes longer, and more of a processor, than a command.
import { main } from '../../cli/dist/esm/terminal/main.js'

const KEY = 'key:7'
const WHO = ['--reason', 'ticket 42', '--as', 'ann', '--yes']
const COMMANDS = [
  ['why', KEY],
  ['why', '--id', '4f0a2b6c8d1e3f507192'], // of no key: all are looked through
  ['top'],
  ['blocked'],
  ['overrides'],
  ['block', KEY, '--for', '1h', ...WHO],
  ['unblock', KEY, ...WHO],
  ['exempt', KEY, '--for', '1h', ...WHO],
  ['exempt', KEY, '--remove', ...WHO],
  ['reset', KEY, '--reason', 'ticket 42', '--dry-run'],
  ['reset', KEY, ...WHO],
]

let isActing = false
async function begunOrEnded() {
  isActing = !isActing
  if (!isActing) return
  let ran = 0
  while (isActing) {
    const command = COMMANDS[ran++ % COMMANDS.length] ?? []
    const code = await main(['node', 'sluice', ...command], '0.0.0')
    if (code !== (command.includes('--id') ? 2 : 0))
      throw new Error(`${command.join(' ')} ended with ${code}`)
  }
  process.send?.(ran)
}
process.on('message', () => void begunOrEnded())
process.on('disconnect', () => process.exit())

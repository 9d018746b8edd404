import type { Member } from './member.js'
import { screen } from './screen.js'

/** Shows the fleet at work until the returned function is called: in place on a terminal, else a line each second. */
export function display(title: string, members: readonly Member[]): () => void {
  const draw =
    process.stdout.isTTY && process.env['TERM'] !== 'dumb' ? inPlace(title, members) : lines(title, members)
  return draw
}

function inPlace(title: string, members: readonly Member[]): () => void {
  const startedAt = Date.now()
  let height = 0

  function draw(): void {
    const seconds = ((Date.now() - startedAt) / 1000).toFixed(1)
    const width = (process.stdout.columns || 80) - 1
    const rows = screen(`${title}  ${seconds} s`, members).map((line) => line.slice(0, width))
    const up = height > 0 ? `\x1b[${height}A` : ''
    process.stdout.write(`${HIDE_CURSOR}\r${up}${rows.map((line) => `${line}\x1b[K\n`).join('')}`)
    height = rows.length
  }

  const showCursor = (): void => void process.stdout.write(SHOW_CURSOR)
  process.once('exit', showCursor)
  const timer = setInterval(draw, 100)
  draw()
  return function finish(): void {
    clearInterval(timer)
    draw()
    showCursor()
    process.off('exit', showCursor)
  }
}

function lines(title: string, members: readonly Member[]): () => void {
  const startedAt = Date.now()

  function print(): void {
    const seconds = ((Date.now() - startedAt) / 1000).toFixed(1).padStart(5)
    const cells = members.map(({ tally }) => `${tally.allowed}/${tally.refused}`.padStart(9))
    console.log(`${seconds} s ${cells.join(' ')}`)
  }

  console.log(`${title}\n\nAllowed/refused so far, a column for each process:\n`)
  const timer = setInterval(print, 1000)
  return function finish(): void {
    clearInterval(timer)
    print()
  }
}

const HIDE_CURSOR = '\x1b[?25l'
const SHOW_CURSOR = '\x1b[?25h'

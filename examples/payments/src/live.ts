import type { WriteStream } from 'node:tty'
import { cut, widthOf } from './table.js'

const REDRAWS_PER_SECOND = 10

/** Draws what `lines` gives for a width, over and over in the same place. Returns what draws it for the last time. */
export function showLive(terminal: WriteStream, lines: (width: number) => readonly string[]): () => void {
  let drawn: readonly string[] = []

  function draw(): void {
    const columns = terminal.columns || 80
    // Where the window became narrower, what stands there takes several rows a line.
    const rows = drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / columns)), 0)
    // The last cell stays free: writing to it leaves some terminals unsure of where their cursor is.
    drawn = lines(columns - 1).map((line) => cut(line, columns - 1))
    const up = rows > 0 ? `\x1b[${rows}A` : ''
    terminal.write(`${HIDE_CURSOR}\r${up}${drawn.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`)
  }

  const showCursor = (): void => void terminal.write(SHOW_CURSOR)
  process.once('exit', showCursor)
  const timer = setInterval(draw, 1000 / REDRAWS_PER_SECOND)
  draw()
  return function finish(): void {
    clearInterval(timer)
    draw()
    showCursor()
    process.off('exit', showCursor)
  }
}

const HIDE_CURSOR = '\x1b[?25l'
const SHOW_CURSOR = '\x1b[?25h'

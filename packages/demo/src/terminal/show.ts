import type { WriteStream } from 'node:tty'
import { cut, paint, widthOf } from './paint.js'

/** The screen of a demo while it runs. */
export interface View {
  readonly title: string
  /** The state in full, for a terminal of `width` columns. */
  screen(width: number): readonly string[]
  /** The meaning of the signs; below the screen. */
  readonly legend: readonly string[]
  /** The state in one line, for logs and pipes, and what stands once above these lines. */
  line(seconds: string): string
  readonly lineHead: string
}

const REDRAWS_PER_SECOND = 10

/** Shows the view until the returned function is called: in place on a terminal, otherwise as a line each second. */
export function show(view: View): () => void {
  const startedAt = performance.now()
  const seconds = (): string => ((performance.now() - startedAt) / 1000).toFixed(1)
  const isTerminal = process.stdout.isTTY && process.env['TERM'] !== 'dumb'
  return isTerminal ? showInPlace(process.stdout, view, seconds) : printLines(view, seconds)
}

/** Prints the view's line each second, for logs and pipes, in which no line can be drawn over. Returns a function that prints a last one and ends it. */
function printLines(view: View, seconds: () => string): () => void {
  const print = (): void => console.log(view.line(seconds()))
  console.log(`\nSluice at work: ${view.title}\n\n${view.lineHead}`)
  const timer = setInterval(print, 1000)
  return function finish(): void {
    clearInterval(timer)
    print()
  }
}

/** Draws the view ten times a second over itself, with the cursor hidden. Returns a function that draws it once more and ends that. */
function showInPlace(terminal: WriteStream, view: View, seconds: () => string): () => void {
  let drawn: readonly string[] = []

  /** Draws the view over what was drawn before, with lines below it. */
  function draw(footer = view.legend): void {
    const columns = terminal.columns || 80
    // Where the window became narrower, what stands there takes several rows a line.
    const rows = drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / columns)), 0)
    // The last cell stays free: writing to it leaves some terminals unsure of where their cursor is.
    const width = columns - 1
    const title = `${paint('bold', 'Sluice')} at work: ${view.title}  ${paint('dim', `${seconds()} s`)}`
    const dimmed = footer.map((line) => paint('dim', line))
    drawn = ['', title, '', ...view.screen(width), '', ...dimmed].map((line) => cut(line, width))
    const up = rows > 0 ? `\x1b[${rows}A` : ''
    terminal.write(`${HIDE_CURSOR}\r${up}${drawn.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`)
  }

  const running = [...view.legend, 'Ctrl-C stops.']
  const showCursor = (): void => void terminal.write(SHOW_CURSOR)
  process.once('exit', showCursor)
  const timer = setInterval(draw, 1000 / REDRAWS_PER_SECOND, running)
  draw(running)
  return function finish(): void {
    clearInterval(timer)
    draw()
    showCursor()
    process.off('exit', showCursor)
  }
}

const HIDE_CURSOR = '\x1b[?25l'
const SHOW_CURSOR = '\x1b[?25h'

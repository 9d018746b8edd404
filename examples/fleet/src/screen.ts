import { styleText } from 'node:util'
import { LIMIT } from './limit.js'
import type { Member } from './member.js'
import { total } from './tally.js'

/** Who asked for how much, what became of it in the last second, and what each got in all. */
export function screen(title: string, members: readonly Member[]): readonly string[] {
  const all = total(members.map(({ tally }) => tally))
  const busiest = Math.max(10, ...members.map((member) => sum(member.lastSecond())))
  return [
    '',
    title,
    '',
    dim(row('process', 'asks/s', 'last second', 'allowed', 'refused', 'share')),
    ...members.map((member) => {
      const { allowed, refused } = member.tally
      const { even, callsPerSecond } = member.job
      const share = all.allowed > 0 ? `${Math.round((100 * allowed) / all.allowed)} %` : ''
      const asks = even ? 'waits' : String(callsPerSecond)
      return row(String(member.pid), asks, bar(member, busiest), String(allowed), String(refused), share)
    }),
    row('all', '', '', String(all.allowed), String(all.refused), `of ${LIMIT}`),
    '',
    dim('█ allowed ░ refused. Ctrl-C stops.'),
  ]
}

const BAR = 26

function bar(member: Member, busiest: number): string {
  const { allowed, refused } = member.lastSecond()
  const cells = (calls: number): number => Math.ceil((calls / busiest) * (BAR - 1))
  const [green, red] = [cells(allowed), cells(refused)]
  const text = '█'.repeat(green) + '░'.repeat(Math.min(red, BAR - green))
  return text.padEnd(BAR)
}

function row(
  name: string,
  asks: string,
  lastSecond: string,
  allowed: string,
  refused: string,
  share: string,
): string {
  const cells = [name.padEnd(8), asks.padStart(6), lastSecond.padEnd(BAR)]
  return [...cells, allowed.padStart(7), refused.padStart(7), share.padStart(6)].join('  ')
}

function sum({ allowed, refused }: { readonly allowed: number; readonly refused: number }): number {
  return allowed + refused
}

function dim(text: string): string {
  return process.stdout.isTTY && process.stdout.hasColors() ? styleText('dim', text) : text
}

import { randomFrom } from './traffic.js'

/** An access log of two hours: 2,500 people, an office behind one address, a scraper, and a client that retries without a pause. */
export function sampleLog(): string {
  const random = randomFrom(7)
  const calls: [at: number, ip: string, path: string, status: number][] = []
  const add = (ip: string, count: number, from: number, span: number, path: string, status = 200): void => {
    for (let i = 0; i < count; i++) calls.push([from + random() * span, ip, path, status])
  }
  for (let person = 1; person <= 2500; person++) {
    const ip = `2001:db8:${person.toString(16)}::1`
    for (let visit = 0; visit < 2; visit++)
      add(ip, 1 + random() * 12, random() * 7000, 120, `/page/${Math.floor(random() * 40)}`)
  }
  add('198.51.100.7', 900, 0, 7200, '/page/1')
  add('198.51.100.23', 2400, 1800, 2400, '/page/2')
  add('192.0.2.66', 700, 5000, 60, '/login', 401)
  calls.sort(([one], [other]) => one - other)
  const start = Date.UTC(2026, 0, 5, 9)
  const line = ([at, ip, path, status]: (typeof calls)[number]): string => {
    const [day, , year, time] = new Date(start + Math.floor(at) * 1000).toUTCString().slice(5).split(' ')
    return `${ip} - - [${day}/Jan/${year}:${time} +0000] "GET ${path} HTTP/1.1" ${status} 512 "-" "Mozilla/5.0"\n`
  }
  return calls.map(line).join('')
}

import { type Program, start } from './program.js'

let run: Program | undefined

afterEach(() => {
  run?.child.kill('SIGTERM') // SIGKILL would leave its servers behind
})

test('shows an outage in Prometheus, with exactly its alerts, and every call counted once', async () => {
  run = start(['observability', '--outage', '10'])
  expect(await run.exitCode).toBe(0)
  expect(run.errors()).toMatch(/^.*\[STORE_DEGRADED\].*\n(?:\(Use .*\n)?.*\[STORE_RECOVERED\].*\n$/)
  expect(run.output()).toContain('✓ in the outage these fire, and no others')
  expect(run.output()).toContain('✓ Prometheus answers every question')
  expect(run.output()).toMatch(/✓ all \d+ expressions of panels and alerts give series/)
  expect(run.output()).toMatch(/✓ (\d+) calls of \/orders were sent, and \1 counted/)
}, 120_000)

import { proxyWarning } from '../src/caller.js'
import { FROM_HOME, plain } from './plain-platform.js'

describe('the header by which a proxy names its client', () => {
  it.each<[string, readonly string[], string | undefined]>([
    ['in any case', ['Host', 'h', 'X-Forwarded-FOR', '192.0.2.1'], 'FORWARDED_NOT_TRUSTED'],
    ['of the standard', ['FORWARDED', 'for=192.0.2.1', 'Host', 'h'], 'FORWARDED_IGNORED'],
    ['of both kinds', ['Forwarded', 'x', 'X-Forwarded-For', 'y'], 'FORWARDED_NOT_TRUSTED'],
    ['that is only a value', ['Host', 'forwarded', 'Accept', 'x-forwarded-for'], undefined],
    ['that only looks like one', ['X-Forwarded-Fox', 'y', 'Forwardee', 'x'], undefined],
  ])('is found %s among names and values as Node received them', (_, rawHeaders, warning) => {
    const reader = { ...plain, rawHeaders: () => rawHeaders }
    expect(proxyWarning(FROM_HOME, reader)).toBe(warning)
  })
})

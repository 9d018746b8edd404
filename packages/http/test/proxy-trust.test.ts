import { addressKey } from '../src/caller.js'
import { FROM_HOME, plain } from './plain-platform.js'

describe('the header by which a proxy names its client', () => {
  it.each<[string, readonly string[], string | undefined]>([
    ['in any case', ['Host', 'h', 'X-Forwarded-FOR', '198.51.100.1'], 'FORWARDED_NOT_TRUSTED'],
    ['of the standard', ['FORWARDED', 'for=198.51.100.1', 'Host', 'h'], 'FORWARDED_IGNORED'],
    ['of both kinds', ['Forwarded', 'x', 'X-Forwarded-For', 'y'], 'FORWARDED_NOT_TRUSTED'],
    ['that is only a value', ['Host', 'forwarded', 'Accept', 'x-forwarded-for'], undefined],
    ['that only looks like one', ['X-Forwarded-Fox', 'y', 'Forwardee', 'x'], undefined],
  ])('is found %s among names and values as Node received them', (_, rawHeaders, warning) => {
    const warn = jest.fn()
    addressKey(FROM_HOME, { ...plain, rawHeaders: () => rawHeaders, warn })
    expect(warn.mock.calls).toEqual(warning ? [[warning]] : [])
  })

  it('is found where a request was made without a list of them', () => {
    const warn = jest.fn()
    const headers = { 'x-forwarded-for': '198.51.100.1' }
    addressKey({ ...FROM_HOME, headers }, { ...plain, rawHeaders: () => [], warn })
    expect(warn.mock.calls).toEqual([['FORWARDED_NOT_TRUSTED']])
  })
})

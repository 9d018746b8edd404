import { readPolicies } from '@sluice/policies'

const lines = (...text: string[]): string => text.join('\n')

describe('a policy file', () => {
  it('gives limiters with their policies, callers and calls', () => {
    const text = lines(
      '{ "$schema": "./schema.json", "limiters": { "api": {',
      '  "policies": [{ "algorithm": "gcra", "limit": 100, "window": "1m", "burst": 20, "name": "steady" }],',
      '  "by": "header:X-Team", "where": "path^=/login,method=POST" } } }',
    )
    const { limiters, errors } = readPolicies(text)
    expect(errors).toEqual([])
    const [{ name, policies, by, where }] = limiters as [(typeof limiters)[0]]
    expect([name, by]).toEqual(['api', 'header:x-team'])
    expect(policies).toEqual([
      expect.objectContaining({ name: 'steady', limit: 100, capacity: 20, windowMs: 60_000 }),
    ])
    const call: Record<string, string> = { path: '/login/again', method: 'POST' }
    expect(where!.matches((part) => call[part])).toBe(true)
    expect(where!.matches((part) => (part === 'method' ? 'GET' : call[part]))).toBe(false)
  })

  it('reports all errors at once, each with its path and line', () => {
    const text = lines(
      '{ "limiters": {',
      '    "a": { "policies": [',
      '      { "algorithm": "gcra", "limit": 0.5,',
      '        "window": "1 m", "brust": 3 },',
      '      { "algorithm": "sliding", "limit": 1, "window": "1m" }',
      '    ], "by": "adress" },',
      '    "b": { "policies": [{ "algorithm": "gcra", "limit": 1, "window": "365d", "burst": 99999999999 }],',
      '      "where": "pth=/x" },',
      '    "c": { "policies": [] },',
      '    "d": { "policies": [{ "algorithm": "fixedWindow", "limit": 1, "window": "1s", "limit": 2 }] },',
      '    "e": 3',
      '} }',
    )
    const { limiters, errors } = readPolicies(text)
    expect(limiters.map(({ name }) => name)).toEqual(['d'])
    expect(errors.map(({ line, path, code }) => `${line} ${path} ${code}`)).toEqual([
      '10 limiters.d.policies[0].limit REPEATED_NAME',
      '4 limiters.a.policies[0].brust INVALID_OPTION',
      '3 limiters.a.policies[0].limit INVALID_LIMIT',
      '4 limiters.a.policies[0].window INVALID_WINDOW',
      '5 limiters.a.policies[1].algorithm INVALID_OPTION',
      '6 limiters.a.by INVALID_KEY',
      '7 limiters.b.policies[0] CAPACITY_TOO_LARGE',
      '8 limiters.b.where INVALID_KEY',
      '9 limiters.c INVALID_POLICIES',
      '11 limiters.e INVALID_OPTION',
    ])
    expect(errors[1]!.message).toContain("did you mean 'burst'?")
  })

  it.each([
    ['{ "limiters": {\n  "a": [1 2] } }', 2, "expected ',' or ']', got '2'"],
    ['{ "limiters": {} }\n x', 2, "expected the end of the file, got 'x'"],
    ['{\n\n"a": "b', 3, `expected a value, got '`],
    ['', 1, 'expected a value, got the end of the file'],
    ['[1,]', 1, "expected a value, got ']'"],
    ['{"a" 1}', 1, "expected ':', got '1'"],
    ['[nul]', 1, "expected a value, got 'nul'"],
    ['['.repeat(100), 1, 'expected at most 32 levels'],
  ])('that is not JSON is one error with its line: %s', (text, line, message) => {
    expect(readPolicies(text).errors).toEqual([
      {
        severity: 'error',
        code: 'INVALID_JSON',
        path: '',
        line,
        message: expect.stringContaining(message) as string,
      },
    ])
  })

  it.each(['null', '[]', '3', '"x"', '{}', '{"limiters":[]}'])('%s has no limiters and says so', (text) => {
    expect(readPolicies(text).errors).toHaveLength(1)
  })

  it('reports what is wrong with a limiter beside the errors of its policies, and of its policies beside unknown names', () => {
    const policy = '{ "algorithm": "GCRA", "limit": 0.5, "window": "1m" }'
    const large = '{ "algorithm": "gcra", "limit": 1, "window": "365d", "burst": 99999999999, "brust": 3 }'
    const text = lines(
      '{ "limiters": {',
      `"n\\n": { "policies": [${policy}, ${large}],`,
      '  "by": "haeder:x-team", "where": "pth=/x,heder:a=b,status=1" },',
      `"many": { "policies": [${Array<string>(11).fill(policy).join(', ')}] }`,
      '} }',
    )
    const { errors } = readPolicies(text)
    const found = errors.map(({ line, path, code }) => `${line} ${path.replace('limiters', '')} ${code}`)
    expect(found.filter((each) => !each.includes('many'))).toEqual([
      '2 ["n\\n"] INVALID_NAME',
      '2 ["n\\n"].policies[0].algorithm INVALID_OPTION',
      '2 ["n\\n"].policies[0].limit INVALID_LIMIT',
      '2 ["n\\n"].policies[1].brust INVALID_OPTION',
      '2 ["n\\n"].policies[1] CAPACITY_TOO_LARGE',
      '3 ["n\\n"].by INVALID_KEY',
      '3 ["n\\n"].where INVALID_KEY',
    ])
    expect(found).toContain('4 .many INVALID_POLICIES')
    const messages = errors.map(({ message }) => message).join('\n')
    expect(messages).toContain("; did you mean 'gcra'?")
    expect(messages).toContain("(did you mean 'header:x-team'?)")
    expect(messages).toMatch(/'pth=\/x': is NAME path\?; .*'heder:a=b': is NAME header:a\?/)
  })

  it.each(['a]', 'a[0]', 'a.b', '', '.', '[', ']', 'policies[0]', '"', '__proto__', 'a].policies[0'])(
    'has the line of each value, whatever the name of its limiter: %j',
    (name) => {
      const text = lines(
        `{ "limiters": { "other": {},`,
        ` ${JSON.stringify(name)}: {`,
        '  "policies": [{',
        '   "limit": -1 }],',
        '  "nonsense": 1',
        '} } }',
      )
      const { errors, lineOf } = readPolicies(text)
      const at = ['limiters', name]
      const paths = [at, [...at, 'policies', 0], [...at, 'policies', 0, 'limit'], [...at, 'gone', 7, 'x']]
      expect(paths.map(lineOf)).toEqual([2, 3, 4, 2])
      expect(errors.filter(({ line }) => line === 5)).toHaveLength(1)
    },
  )

  it('compares a value of where whole, whatever it holds', () => {
    const where = 'path=/a\u2028\u2029\r\nb'
    const { limiters, errors } = readPolicies(
      JSON.stringify({
        limiters: { api: { policies: [{ algorithm: 'gcra', limit: 1, window: '1m' }], where } },
      }),
    )
    expect(errors).toEqual([])
    expect(limiters[0]!.where!.matches(() => where.slice(5))).toBe(true)
    expect(limiters[0]!.where!.matches(() => '/a')).toBe(false)
  })

  it('has no plan without a name, which every call without a plan would be of', () => {
    const policies = '[{ "algorithm": "gcra", "limit": 1, "window": "1m" }]'
    const text = lines(
      `{ "limiters": { "api": { "policies": ${policies}, "plans": {`,
      `  "pro": ${policies},`,
      `  "": ${policies} } } } }`,
    )
    const { limiters, errors } = readPolicies(text)
    const message = 'name must be a text that is not empty, got ""'
    const path = 'limiters.api.plans[""]'
    expect(errors).toEqual([{ severity: 'error', code: 'INVALID_NAME', path, line: 3, message }])
    expect(limiters).toEqual([])
  })

  it('is not fooled by names of Object.prototype', () => {
    expect(
      readPolicies('{"limiters":{},"__proto__":1,"constructor":2}').errors.map(({ path }) => path),
    ).toEqual(['__proto__', 'constructor'])
  })
})

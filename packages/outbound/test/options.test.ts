import { createLimiter, createSemaphore, gcra } from '@sluice/core'
import axios from 'axios'
import { createQueue, limitAxios, limitFetch, limitUndici } from '../src/index.js'

const limiter = createLimiter({ policies: [gcra({ limit: 10, window: '1m' })] })
const send = () => Promise.reject(new Error('not sent'))
const dispatcher = { compose: () => dispatcher, close: send, destroy: send }

/** What takes options, how its messages name it, one of its names misspelt, and that name. */
const OBJECTS: [what: string, take: (given: object) => unknown, wrong: string, name: string][] = [
  ['createQueue', (given) => createQueue(given as never), 'maxQueued', 'maxQueue'],
  ['createQueue', (given) => createQueue(given as never), 'onEvents', 'onEvent'],
  ['limitFetch', (given) => limitFetch(send, given as never), 'isRetriable', 'isRetryable'],
  ['limitUndici', (given) => limitUndici(given as never), 'maxwait', 'maxWait'],
  ['limitUndici', (given) => limitUndici(dispatcher, given as never), 'maxHolds', 'maxHold'],
  ['limitAxios', (given) => limitAxios(send, given as never), 'costs', 'cost'],
]

describe.each(OBJECTS)('%s', (what, take, wrong, name) => {
  it(`refuses '${wrong}', which it does not have, and suggests the nearest name`, () => {
    const message = expect.stringMatching(
      `^there is no option '${wrong}' of ${what}: did you mean '${name}'\\?`,
    )
    expect(() => take({ limiter, [wrong]: 1 })).toThrow(
      expect.objectContaining({ name: 'PolicyError', code: 'INVALID_OPTION', message }),
    )
  })

  it.each(['minTime', 'reservoir', 'intervalCap', 'concurrency'])(
    "names the command that finds '%s' of another package",
    (foreign) => {
      const message = expect.stringMatching(`'${foreign}' of ${what}: npx @sluice/cli option ${foreign} `)
      expect(() => take({ [foreign]: 1 })).toThrow(
        expect.objectContaining({ code: 'INVALID_OPTION', message }),
      )
    },
  )

  it('takes an option that is undefined as left out', () => {
    expect(() =>
      take({ limiter, semaphore: createSemaphore({ limit: 1 }), [wrong]: undefined }),
    ).not.toThrow()
  })

  it('refuses what is no object of options', () => {
    expect(() => take(5 as never)).toThrow(`${what} takes an object of options, got 5`)
  })
})

describe('a client', () => {
  it.each<[string, (given: never) => unknown, unknown, string]>([
    [
      'limitFetch',
      (given) => limitFetch(given, { limiter }),
      undefined,
      'takes a function such as fetch, got undefined',
    ],
    [
      'limitFetch',
      (given) => limitFetch(given, { limiter }),
      { limiter },
      'takes a function such as fetch, got',
    ],
    [
      'limitAxios',
      (given) => limitAxios(given, { limiter }),
      axios.defaults.adapter,
      "takes an adapter such as axios.getAdapter('http'), got",
    ],
    [
      'limitAxios',
      (given) => limitAxios(given, { limiter }),
      'http',
      'takes an adapter such as axios.getAdapter(\'http\'), got "http"',
    ],
    ['limitAxios', (given) => limitAxios(given, { limiter }), axios.create, ''],
    [
      'limitUndici',
      (given) => limitUndici(given, { limiter }),
      undefined,
      'takes a dispatcher and options, got undefined',
    ],
    [
      'limitUndici',
      (given) => limitUndici(given, { limiter }),
      'https://a.example',
      'takes a dispatcher and options, got "https',
    ],
    [
      'limitUndici',
      (given) => limitUndici(given),
      dispatcher,
      'takes options, after a dispatcher if there is one, got',
    ],
    ['limitUndici', (given) => limitUndici(given), undefined, 'takes an object of options, got undefined'],
  ])('of %s is checked when it is given', (what, take, given, message) => {
    if (message === '') return expect(() => take(given as never)).not.toThrow()
    return expect(() => take(given as never)).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTION',
        message: expect.stringContaining(`${what} ${message}`),
      }),
    )
  })
})

describe('run', () => {
  it('refuses an option that a call does not have, and calls nothing', async () => {
    const queue = createQueue({ limiter })
    const call = jest.fn()
    await expect(queue.run(call, { prio: 1 } as never)).rejects.toMatchObject({
      name: 'InputError',
      code: 'INVALID_OPTION',
      message: expect.stringContaining("there is no option 'prio' of run: "),
    })
    expect(call).not.toHaveBeenCalled()
  })
})

/**
 * Declares cases in a program whose global Promise is a class of its own. Async functions go on to return native promises, which
 * are no instances of it. `npm run verify -- promises` runs the whole kit so, and under the Promises of libraries.
 */
export function underOtherPromise(cases: () => void): void {
  describe('under another global Promise', () => {
    const { Promise: before } = globalThis
    beforeAll(() => void (globalThis.Promise = class OwnPromise<T> extends before<T> {} as typeof before))
    afterAll(() => void (globalThis.Promise = before))
    cases()
  })
}

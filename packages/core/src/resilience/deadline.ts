import { StoreError } from '../errors.js'

/**
 * What a store answers, if it does within `ms` milliseconds. A call that is late may still be carried out by the
 * store: deadlines count too much, never too little.
 * @throws {StoreError} STORE_TIMEOUT.
 */
export function withDeadline<T>(answer: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new StoreError('STORE_TIMEOUT', `the store did not answer within ${ms} ms`))
    }, ms)
    answer.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/*
 * Sends two requests with each of four clients that retry by themselves, all at once, and prints the statuses they
 * ended with: { got: [200, 200], ... }. The header X-Client tells the server which is which.
 */
import axios from 'axios'
import axiosRetry from 'axios-retry'
import got from 'got'
import ky from 'ky'
import { Agent, request, RetryAgent } from 'undici'

const url = process.argv[2]

// Repeats no 429 by default. With that option it waits for Retry-After.
const patient = axios.create()
axiosRetry(patient, { retryCondition: ({ response }) => response?.status === 429 })

const dispatcher = new RetryAgent(new Agent())

const clients = {
  got: async (headers) => (await got(url, { headers })).statusCode,
  ky: async (headers) => (await ky(url, { headers })).status,
  'axios-retry': async (headers) => (await patient.get(url, { headers })).status,
  undici: async (headers) => {
    const { statusCode, body } = await request(url, { headers, dispatcher })
    await body.dump()
    return statusCode
  },
}

const outcomes = Object.entries(clients).map(async ([name, get]) => {
  const headers = { 'X-Client': name }
  return [name, [await get(headers), await get(headers)]]
})
console.log(JSON.stringify(Object.fromEntries(await Promise.all(outcomes))))
await dispatcher.close()

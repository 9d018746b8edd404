import { redisStore } from '@sluice/core/redis'
import { Redis } from 'iovalkey'

const reconnectOnError = (error: Error) => error.message.includes('READONLY')
export const client = new Redis('redis://127.0.0.1:17465', { maxRetriesPerRequest: 0, reconnectOnError })
export const store = redisStore(client)

import { redisStore } from '@sluice/core/redis'
import { Redis } from 'ioredis'

const reconnectOnError = (error: Error) => error.message.includes('READONLY')
export const client = new Redis('redis://127.0.0.1:14875', { maxRetriesPerRequest: 0, reconnectOnError })
export const store = redisStore(client)

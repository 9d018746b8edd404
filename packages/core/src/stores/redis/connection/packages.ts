import { StoreError } from '../../../values/errors.js'
import type { Endpoint } from './endpoint.js'
import type { Opened } from './opened.js'
import { openIoredis } from './own-ioredis.js'
import { openNodeRedis } from './own-node-redis.js'

/*
 * The client packages are optional peers: they are loaded when a connection is made, not when this file is imported.
 * The specifiers are literals, so that bundlers include the packages that are installed; each import is in a `try`, so that
 * bundlers treat the others as optional. The build marks them for webpack, which would warn of those: it leaves them to the runtime.
 */
/**
 * The opener of connections by the first package that is installed: ioredis, iovalkey or redis. Rejects with StoreError
 * CLIENT_MISSING if none is.
 */
export async function loadOpener(): Promise<(options: Endpoint) => Opened> {
  const ioredis = (await load('ioredis')) ?? (await load('iovalkey'))
  if (ioredis) return (options) => openIoredis(exportsOf(ioredis, 'Cluster'), options)
  const nodeRedis = await load('redis')
  if (nodeRedis) return (options) => openNodeRedis(exportsOf(nodeRedis, 'createCluster'), options)
  const what = `a connection of its own needs a client package: npm install ioredis (or iovalkey, or redis)`
  throw new StoreError('CLIENT_MISSING', `${what}, or hand in a client`)
}

/** Loads a client package. Undefined if it is not installed; one that is and fails to load is an error. */
async function load(name: 'ioredis' | 'iovalkey' | 'redis'): Promise<unknown> {
  try {
    if (name === 'ioredis') return await import('ioredis')
    if (name === 'iovalkey') return await import('iovalkey')
    return await import('redis')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const isMissing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
    if (isMissing && message.includes(`'${name}'`)) return undefined
    throw error
  }
}

/** The exports of a CommonJS module, which lie in `default` or not, depending on the loader. */
function exportsOf<T>(module: unknown, name: keyof T): T {
  const { default: whole } = module as { default?: T }
  return whole?.[name] === undefined ? (module as T) : whole
}

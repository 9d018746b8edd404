export * from '../dist/cjs/stores/redis.js'

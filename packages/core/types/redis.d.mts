export * from '../dist/cjs/stores/redis/index.js'

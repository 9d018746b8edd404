export * from '../dist/cjs/http/index.js'

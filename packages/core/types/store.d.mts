export * from '../dist/cjs/stores/index.js'

export * from '../dist/cjs/stores/machine/index.js'

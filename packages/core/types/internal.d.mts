export * from '../dist/cjs/internal.js'

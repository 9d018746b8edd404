export * from '../dist/cjs/node.js'

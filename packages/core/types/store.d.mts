export * from '../dist/cjs/stores/authoring.js'

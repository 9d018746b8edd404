// For mutation testing: the tables catch most mistakes in a moment, the conformance kit the rest.
const { default: Sequencer } = require('@jest/test-sequencer')

module.exports = class QuickTestsFirst extends Sequencer {
  sort(tests) {
    const weight = ({ path }) => (path.includes('conformance') ? 2 : path.includes('algorithms') ? 0 : 1)
    return [...tests].sort((a, b) => weight(a) - weight(b))
  }
}

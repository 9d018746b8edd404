const src = 'packages/core/src'

/** @type {readonly import('../mistakes.js').Mistake[]} */
export const limiterMistakes = [
  {
    mechanism: 'leases',
    mistake: 'a lease serves one unit more than was booked for it',
    row: 1,
    file: `${src}/leases/lease.ts`,
    text: 'this.#units = spare',
    broken: 'this.#units = spare + 1',
  },
  {
    mechanism: 'checked input',
    mistake: 'costs below 0 are taken',
    row: 21,
    file: `${src}/values/cost.ts`,
    text: 'cost >= 0 && ',
    broken: '',
  },
  {
    mechanism: 'copies',
    mistake: 'each copy of the package has a backing of its own',
    row: 33,
    file: `${src}/values/contract.ts`,
    text: 'all[Symbol.for(`sluice.${name}.${CONTRACT_NUMBER}`)] ??= make()',
    broken: 'all[Symbol(name)] ??= make()',
  },
  {
    mechanism: 'copies',
    mistake: 'adapters read only the decisions of their own copy',
    row: 33,
    file: `${src}/limiter/decision.ts`,
    text: "Symbol.for('sluice.policies')",
    broken: "Symbol('sluice.policies')",
  },
  {
    mechanism: 'copies',
    mistake: 'errors are instances of the classes of their own copy alone',
    row: 33,
    file: `${src}/values/errors.ts`,
    text: 'if (kind && Object.hasOwn(kind, KIND) && kind[KIND] === this[KIND]) return true',
    broken: 'if (kind === this) return true',
  },
  {
    mechanism: 'copies',
    mistake: 'parts of another contract are taken',
    row: 33,
    file: `${src}/values/contract.ts`,
    text: 'number === undefined || number === CONTRACT_NUMBER',
    broken: 'number === undefined || number >= CONTRACT_NUMBER',
  },
]

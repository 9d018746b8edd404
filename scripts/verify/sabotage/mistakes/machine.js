const src = 'packages/machine/src'

/** @type {readonly import('../mistakes.js').Mistake[]} */
export const machineMistakes = [
  {
    mechanism: 'one serves',
    mistake: 'a socket that refuses is deleted, and its name is taken',
    row: 35,
    file: `${src}/socket-folder.ts`,
    text: 'const number = former === undefined ? 1 : 1 + numberOf(former.slice(this.#folder.length + 1))',
    broken:
      "const number = 1\n    for (const name of readdirSync(this.#folder)) if (!name.startsWith('.')) rmSync(join(this.#folder, name))",
  },
  {
    mechanism: 'one serves',
    mistake: 'nobody takes over from a process that has ended',
    row: 35,
    file: `${src}/membership.ts`,
    text: 'const own = await this.#serve(newest)',
    broken: 'const own = newest === undefined ? await this.#serve(newest) : undefined',
  },
  {
    mechanism: 'at most once',
    mistake: 'each process that is served counts for itself',
    row: 35,
    file: `${src}/session.ts`,
    text: 'this.#host.open(readPolicyListing(text), this)',
    broken: 'this.#host.open(Object.assign(readPolicyListing(text), { name: `${this.id}` }), this)',
  },
]

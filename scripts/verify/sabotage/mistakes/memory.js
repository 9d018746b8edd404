const src = 'packages/core/src/stores/memory'

/** @type {readonly import('../mistakes.js').Mistake[]} */
export const memoryMistakes = [
  {
    mechanism: 'bounded memory',
    mistake: 'maxKeys is ignored',
    row: 18,
    file: `${src}/index.ts`,
    text: 'if (this.#size >= this.#maxKeys) this.#evict(now)',
    broken: '',
  },
  {
    mechanism: 'eviction',
    mistake: 'exhausted keys go first',
    row: 19,
    file: `${src}/rank.ts`,
    text: 'return EXHAUSTED + cursor.rows.denialsOf(row)',
    broken: 'return LEAST',
  },
  {
    mechanism: 'eviction',
    mistake: 'any key goes, whatever it has spent',
    row: 19,
    file: `${src}/rank.ts`,
    text: 'Math.max(most, LEAST, 1 - view.remaining / policy.capacity)',
    broken: 'Math.max(most, LEAST)',
  },
  {
    mechanism: 'sweeping',
    mistake: 'everything is looked at in one turn',
    row: 20,
    file: `${src}/index.ts`,
    text: 'seen < rows && performance.now() < end;',
    broken: 'seen < this.chunks.length * CHUNK_ROWS;',
  },
  {
    mechanism: 'policies together',
    mistake: 'in memory the first is charged before the second is asked',
    row: 24,
    file: `${src}/table.ts`,
    text: 'cursor.instants[i] = earliest\n',
    broken:
      'cursor.instants[i] = earliest\n' +
      "      if (i === 0 && row !== 0 && ask === 'consume' && earliest <= now) cursor.admit(policies.slice(0, 1), now, cost)\n",
  },
  {
    mechanism: 'release',
    mistake: 'units are released as of now where places are booked ahead',
    row: 29,
    file: `${src}/corrections.ts`,
    text: 'Math.max(now, bookings.lastOf(row)), charged, units',
    broken: 'now, charged, units',
  },
  {
    mechanism: 'born',
    mistake: 'memory gives back charges whose state was lost',
    row: 29,
    file: `${src}/corrections.ts`,
    text: 'if (charged.decidedAt < cursor.born) return 0',
    broken: '',
  },
  {
    mechanism: 'own limits',
    mistake: 'a ticket passes one that waits under a lower limit',
    row: 3,
    file: `${src}/permit-queues.ts`,
    text: 'this.#waiting.size === 0 && ',
    broken: '',
  },
]

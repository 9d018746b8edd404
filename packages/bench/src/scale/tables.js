import { short } from '../figures/table.js'

/** @param {readonly import('./part.js').OfMemory[]} memory */
export function memoryTable(memory) {
  return {
    title: 'Keys in a memory store',
    columns: ['keys', 'CPU a decision, ns', 'bytes a key', "of its text, in the caller's hands"],
    rows: memory.map(({ keys, cpuNs, bytes, textBytes }) => [
      count(keys),
      short(cpuNs),
      short(bytes),
      short(textBytes),
    ]),
  }
}

/** @param {readonly import('./redis-keys.js').OfKeys[]} redis */
export function redisTable(redis) {
  return {
    title: 'Keys in Redis',
    columns: ['keys', 'decisions/s', 'CPU of Redis, us', 'bytes a key'],
    rows: redis.map(({ keys, perSecond, serverUs, bytes }) => [
      count(keys),
      short(perSecond),
      short(serverUs),
      short(bytes),
    ]),
  }
}

/** @param {readonly string[][]} rows */
export function exponentTable(rows) {
  return {
    title: 'Exponents of the curves',
    columns: ['against the number of keys, or of clients', 'exponent'],
    rows,
  }
}

/** @param {readonly import('./processes.js').OfClients[]} processes */
export function processTable(processes) {
  return {
    title: 'Client processes and masters',
    columns: [
      '',
      'clients',
      'decisions/s',
      'p99, ms',
      'CPU of Redis, us',
      'CPU of the client, us',
      'bytes on the wire',
    ],
    rows: processes.map(({ topology, clients, perSecond, p99, serverUs, clientUs, wireBytes }) => [
      topology,
      String(clients),
      short(perSecond),
      short(p99),
      short(serverUs),
      short(clientUs),
      short(wireBytes),
    ]),
  }
}

/** @param {number} keys */
function count(keys) {
  return keys.toLocaleString('en')
}

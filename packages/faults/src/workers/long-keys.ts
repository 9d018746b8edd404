import { longKeys } from '../rows/row-18-long-keys.js'

/* Prints what keys of callers take in everything that holds them, in a process that does nothing else. For row 18. */
console.log(JSON.stringify(await longKeys()))

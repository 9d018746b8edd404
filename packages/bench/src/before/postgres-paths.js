// The paths that are measured over a real Postgres, with a closed loop. No key reaches its limit, nor is full again before its next
// call.

/** @typedef {{ callers: number, keys: number, together?: boolean }} PostgresPath With `together` a call is on two keys. */

const KEYS = 10_000

/** @type {Readonly<Record<string, PostgresPath>>} */
export const postgresPaths = {
  'Postgres, 1 caller': { callers: 1, keys: KEYS },
  'Postgres, 64 callers': { callers: 64, keys: KEYS },
  'Postgres, 64 callers, one hot key': { callers: 64, keys: 1 },
  'Postgres, 64 callers, two keys together': { callers: 64, keys: KEYS, together: true },
}

import { execFileSync } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

/*
 * Postgres and PgBouncer refuse to run as root. A server of root's is run as the user that the packages made, or as nobody: its
 * folder belongs to that user.
 */
export const OWNER = process.getuid?.() === 0 ? ownerOf(['postgres', 'nobody']) : undefined

/**
 * The ids of the first of these users that exists.
 * @throws {Error} if none does.
 */
function ownerOf(names: readonly string[]): { readonly uid: number; readonly gid: number } {
  for (const name of names) {
    try {
      const id = (which: string): number => Number(execFileSync('id', [which, name], { stdio: 'pipe' }))
      return { uid: id('-u'), gid: id('-g') }
    } catch {
      // there is no such user
    }
  }
  throw new Error(`there is none of the users ${names.join()} to run a server as`)
}

/** Makes a temporary folder for a server, which belongs to the user that it runs as. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-postgres-'))
  if (OWNER) chownSync(folder, OWNER.uid, OWNER.gid)
  return folder
}

/** The newest program of that name: in SLUICE_POSTGRES_BIN, in PATH, or where Debian keeps those of each version. */
export function programOf(name: string): string {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian)
    ? readdirSync(debian).sort((one, other) => Number(other) - Number(one))
    : []
  const named = process.env.SLUICE_POSTGRES_BIN
  const folders = named
    ? [named, '/usr/sbin']
    : [
        ...versions.map((version) => join(debian, version, 'bin')),
        ...(process.env.PATH ?? '').split(delimiter),
        '/usr/sbin',
      ]
  const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
  if (!found) throw new NoPostgresError(name)
  return found
}

/** Skips a test where `npm test` has found no server: without-redis.js knows it by its code. */
class NoPostgresError extends Error {
  readonly code = 'NO_POSTGRES'

  constructor(name: string) {
    super(`There is no ${name} in PATH or /usr/lib/postgresql`)
  }
}

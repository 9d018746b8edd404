// Folders for what a script needs only while it runs.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** @type {string[]} */
const folders = []
process.on('exit', () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })))

/**
 * A new folder, which is removed when the process ends.
 * @param {string} name
 */
export function temporaryFolder(name) {
  const folder = mkdtempSync(join(tmpdir(), `sluice-${name}-`))
  folders.push(folder)
  return folder
}

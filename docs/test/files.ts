import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'

const LIST = ['ls-files', '--cached', '--others', '--exclude-standard']

/** The files of the repository by their paths, without those that git ignores. */
export const FILES: readonly string[] = execFileSync('git', LIST, { encoding: 'utf8' })
  .split('\n')
  .filter((path) => path !== '' && statSync(path, { throwIfNoEntry: false })?.isFile())

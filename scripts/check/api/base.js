// The commit that a change is compared with: where the branch left main, and on main itself the last release. Until there
// is one, what is not committed is compared with what is.
import { spawnSync } from 'node:child_process'

/** Nothing outside of a git repository. */
export function baseCommit() {
  const head = git('rev-parse', 'HEAD')
  if (!head) return undefined
  for (const branch of ['main', 'origin/main']) {
    const base = git('merge-base', head, branch)
    if (base && base !== head) return base
  }
  return git('describe', '--tags', '--abbrev=0', '--match', 'v*') ?? head
}

/**
 * The text of a file at a commit; empty where it was not there.
 * @param {string} commit
 * @param {string} path
 */
export function fileAt(commit, path) {
  const { status, stdout } = spawnSync('git', ['show', `${commit}:${path}`], { encoding: 'utf8' })
  return status === 0 ? stdout : undefined
}

/** @param {string[]} args */
function git(...args) {
  const { status, stdout } = spawnSync('git', args, { encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}

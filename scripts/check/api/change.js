// The mistakes in the public surface of a package: a report that is not written anew, or a change without a changeset.

/**
 * @typedef {object} Surface
 * @property {string} name Of the package.
 * @property {string} path Of its report.
 * @property {string} surface As it is.
 * @property {string} reported As its report says.
 * @property {string} [before] As it was at the commit that a change is compared with; nothing where that had no report yet.
 */

/**
 * @param {Surface} surface
 * @param {readonly import('../../changesets.js').Changeset[]} added The changesets since then.
 * @returns {string[]}
 */
export function problemsOf({ name, path, surface, reported, before }, added) {
  const problems = []
  if (surface !== reported) {
    problems.push(`${path} is not the public surface (npm run check -- api --write)`)
  }
  const changed = before !== undefined && before !== surface
  if (changed && !added.some(({ packages }) => packages.includes(name))) {
    problems.push(`${name}: the public surface has changed, and no new changeset names it (npx changeset)`)
  }
  return problems
}

// The address of the repository, which the maintainer gives: "repository" in package.json of the root, and nowhere else. It
// is empty until then. What is packed gets it from here.
import { manifestOf } from '../workspace.js'

/** Addresses of repositories, wherever they are written. The last part of one is its name. */
const ADDRESS =
  /(?:https?:\/\/|git@|git:\/\/)(?:[\w-]+\.)*(?:github|gitlab|bitbucket|codeberg|sr)\.(?:com|org|ht)[/:][\w.~-]+\/[\w.-]+/g

/** @returns {string} `https://HOST/OWNER/NAME`, or nothing. */
export function repositoryAddress() {
  const { repository = '' } = /** @type {{ repository?: string }} */ (manifestOf('.'))
  if (repository !== '' && !/^https:\/\/[\w.-]+\/[\w.~-]+\/[\w.-]+$/.test(repository)) {
    throw new Error(
      `"repository" in package.json must be https://HOST/OWNER/NAME or empty, got ${repository}`,
    )
  }
  return repository.replace(/\.git$/, '')
}

/**
 * The fields of the repository in a published manifest.
 * @param {string} folder
 */
export function repositoryField(folder) {
  const address = repositoryAddress()
  return address && { repository: { type: 'git', url: `git+${address}.git`, directory: folder } }
}

/**
 * The repositories other than this one that a text calls its own place: what is said of the code of others is written as
 * `owner/name#1`.
 * @param {string} text
 */
export function otherAddresses(text) {
  const own = repositoryAddress()
  return [...text.matchAll(ADDRESS)]
    .map(([address]) => address)
    .filter((address) => own === '' || !address.startsWith(own))
}

/**
 * The anchor of a heading, as code hosts make it, so that links work there and here.
 * @param {string} heading
 */
export function githubSlug(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')
}

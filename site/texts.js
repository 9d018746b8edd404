// The files for readers without a browser: a Markdown twin of each page, and llms.txt.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { filesOf, navigation, placeOf, addressOf } from './pages.js'

/**
 * @param {string} folder
 * @param {string} root
 */
export function writeTexts(folder, root) {
  const files = filesOf(root)
  for (const file of files) {
    const path = join(folder, placeOf(file))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, twinOf(root, files, file))
  }
  const parts = navigation(root).map(({ title, pages }) => {
    const links = pages.map(({ path, title: name }) => `- [${name}](${path})`)
    return `## ${title}\n\n${links.join('\n')}`
  })
  writeFileSync(
    join(folder, 'llms.txt'),
    `# Sluice\n\n> Rate limiting for Node, in one process or across a fleet. Each page of this site has a twin in Markdown.\n\n${parts.join('\n\n')}\n`,
  )
  copyFileSync(`${root}/LICENSE`, join(folder, 'LICENSE'))
}

/**
 * A page as it lies in the repository, with links to the twins of others.
 * @param {string} root
 * @param {readonly string[]} files
 * @param {string} file
 */
function twinOf(root, files, file) {
  const up = '../'.repeat(placeOf(file).split('/').length - 1)
  return readFileSync(join(root, file), 'utf8').replaceAll(/\]\(([^)\s]+)\)/g, (link, href) => {
    if (/^(?:[a-z]+:|#)/.test(href)) return link
    const address = addressOf(files, file, href)
    return address === '' ? link : `](${up}${address.slice(1).replace(/\.html(?=#|$)/, '.md')})`
  })
}

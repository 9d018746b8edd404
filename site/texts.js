// What readers without a browser get: a Markdown twin of each page, llms.txt, and the sitemap.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { filesOf, navigation, placeOf, targetOf } from './pages.js'
import { htmlOf } from './checks.js'

/**
 * @param {string} folder
 * @param {string} root
 */
export function writeTexts(folder, root) {
  const { homepage = '' } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))
  for (const file of filesOf(root).filter((each) => !each.startsWith('site/pages/'))) {
    const path = join(folder, placeOf(file))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, twinOf(root, file))
  }
  const parts = navigation(root).map(({ title, pages }) => {
    const links = pages
      .filter(({ file }) => !file.startsWith('site/pages/'))
      .map(({ path, title: name }) => `- [${name}](${path})`)
    return `## ${title}\n\n${links.join('\n')}`
  })
  writeFileSync(
    join(folder, 'llms.txt'),
    `# Sluice\n\n> Rate limiting for Node, in one process or across a fleet. Each page of this site has a twin in Markdown.\n\n${parts.join('\n\n')}\n`,
  )
  copyFileSync(`${root}/LICENSE`, join(folder, 'LICENSE'))
  // Addresses of a sitemap are whole, so it needs that of the site, which stands in package.json as \`homepage\`.
  const pages = htmlOf(folder).filter((name) => name !== '404.html')
  const entries = pages.map(
    (name) => `  <url><loc>${homepage}/${name.replace(/(^|\/)index\.html$/, '$1')}</loc></url>`,
  )
  if (homepage === '') console.log('no sitemap: package.json names no homepage')
  else
    writeFileSync(
      join(folder, 'sitemap.xml'),
      `<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n${entries.join('\n')}\n</urlset>\n`,
    )
}

/**
 * A page as it lies in the repository, with links to the twins of others.
 * @param {string} root
 * @param {string} file
 */
function twinOf(root, file) {
  const up = '../'.repeat(placeOf(file).split('/').length - 1)
  return readFileSync(`${root}/${file}`, 'utf8').replaceAll(/\]\(([^)\s]+)\)/g, (link, href) => {
    if (/^(?:[a-z]+:|#)/.test(href)) return link
    const target = targetOf(root, file, href)
    return 'path' in target ? `](${up}${target.path.slice(1).replace(/\.html(?=#|$)/, '.md')})` : link
  })
}

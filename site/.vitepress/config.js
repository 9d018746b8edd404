// The site as VitePress builds it. Its pages are files of the repository (order.js has their order); what stands here is how they
// are found, linked and searched.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { defineConfig } from 'vitepress'
import { githubSlug } from '../anchors.js'
import { optionsIn } from '../checks.js'
import { addressed, addressOf, filesOf, navigation, placeOf } from '../pages.js'
import { firstPage } from '../first-page.ts'
import { drawPictures, withPictures } from '../pictures.ts'
import { themeRepairs } from '../theme-repairs.js'
import { BASE } from '../portable.js'
import { SEARCH, WORDS } from '../search-options.js'

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const manifest = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))
const { image, socialLinks, ...site } = addressed(manifest)
const { version } = JSON.parse(readFileSync(`${root}/packages/core/package.json`, 'utf8'))
const parts = navigation(root)
const files = filesOf(root)
const made = new Map([...(await drawPictures(BASE)), ...(await firstPage(root))])
const description = 'Rate limiting for Node that is exact, in one process or across a fleet'

/**
 * A worker as a text, from which a page makes a blob: a worker of a blob inherits what its page may not do.
 * @param {string} file
 */
async function workerScript(file) {
  const options = /** @type {const} */ ({ bundle: true, minify: true, write: false, format: 'iife' })
  const { outputFiles } = await build({ entryPoints: [`${root}/site/playground/${file}`], ...options })
  return JSON.stringify(outputFiles[0]?.text)
}

/** Markdown of the repository that is no page. */
const NOT_PAGES =
  `!(docs|packages|site|*.md)/** site/!(pages|generated)/** packages/*/!(README).md packages/*/*/**
  packages/{bench,demo,faults,harness}/** docs/test/** !(README|CHANGELOG).md`.split(/\s+/)

/** The pages in the bar above all pages. */
const NAV = {
  Start: 'start',
  Playground: 'playground',
  'Your log': 'log',
  Algorithms: 'algorithms',
  Reference: 'api/index',
}

export default defineConfig({
  title: 'Sluice',
  description,
  lang: 'en',
  base: BASE,
  srcDir: '..',
  outDir: './dist',
  cacheDir: '../node_modules/.cache/vitepress',
  srcExclude: NOT_PAGES,
  rewrites: Object.fromEntries(files.map((file) => [file, placeOf(file)])),
  ...site,
  metaChunk: true,
  router: { prefetchLinks: false },
  // Every link and anchor of the pages that were built is checked by links.js, also those that are made by components.
  ignoreDeadLinks: true,
  head: [
    ['link', { rel: 'icon', type: 'image/svg+xml', href: `${BASE}favicon.svg` }],
    ['meta', { property: 'og:title', content: 'Sluice' }],
    ['meta', { property: 'og:description', content: description }],
    ['meta', { property: 'og:image', content: image }],
  ],
  themeConfig: {
    logo: '/favicon.svg',
    version,
    nav: Object.entries(NAV).map(([text, page]) => ({ text, link: `/${page}.html` })),
    sidebar: parts.map(({ title, pages }) => ({
      text: title,
      collapsed: !['Start', 'Choose', 'Run'].includes(title),
      items: pages.map((page) => ({ text: page.title, link: `/${page.path.replace(/\.md$/, '')}` })),
    })),
    outline: { level: [2, 3] },
    socialLinks,
    search: { provider: 'local', options: { miniSearch: SEARCH, detailedView: true, _render: indexed } },
  },
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-default' },
    anchor: { slugify: githubSlug },
    config(md) {
      md.core.ruler.push('links', ({ tokens, env }) => relink(tokens, env))
      const draw = (state) => void (state.src = withPictures(anchored(state.src, state.env), made))
      md.core.ruler.before('normalize', 'pictures', draw)
    },
  },
  vite: {
    plugins: [themeRepairs()],
    define: {
      WORKER_SCRIPT: await workerScript('worker.ts'),
      LOG_WORKER_SCRIPT: await workerScript('log-worker.ts'),
    },
    publicDir: `${root}/site/public`,
    build: { chunkSizeWarningLimit: 4000, assetsInlineLimit: 0 },
  },
})

/**
 * Links between files become links between pages; those to other files lead to the repository, or nowhere while its address is
 * empty.
 * @param {any[]} tokens
 * @param {{ path: string, realPath?: string }} env
 */
function relink(tokens, { path, realPath }) {
  if (!path) return // a title by itself
  const from = relative(root, realPath ?? path)
  for (const child of tokens.flatMap((token) => token.children ?? [])) {
    const href = child.attrGet('href') ?? '/'
    if (/^(?:[a-z]+:|\/|#)/.test(href)) continue
    const address = addressOf(files, from, href, manifest.repository)
    child.attrs = address === '' ? [['title', href]] : [['href', address]]
  }
}

/**
 * The list of every option of other packages, with an anchor before the first of each name that is no option here too.
 * @param {string} markdown
 * @param {{ path?: string, realPath?: string }} env
 */
function anchored(markdown, { path = '', realPath = path }) {
  if (relative(root, realPath) !== 'docs/migrate/README.md') return markdown
  const known = new Set(optionsIn(root))
  return markdown.replaceAll(/(?<=^\| )`(\w+)`(?= \|)/gm, (code, name) =>
    known.has(name) || !known.add(name) ? code : `<a id="option-${name}"></a>${code}`,
  )
}

/**
 * The text that is searched: of the reference the sections of options, and the titles of all else; of a page that is an application its
 * title and description; of other pages all, with the words of readers.
 * @param {string} source
 * @param {any} env
 * @param {any} md
 */
function indexed(source, env, md) {
  const html = md.render(source, env)
  const { layout, title, description, search } = env.frontmatter
  if (search === false) return ''
  const about = `<h1 id="">${title} <a class="header-anchor" href="#"></a></h1>${description}`
  if (layout === 'page') return withWords(about, env.relativePath)
  if (!env.relativePath.startsWith('docs/api/')) {
    const rows = html.replaceAll(/<a id="(option-(\w+))"><\/a>/g, '<h3>$2 <a href="#$1"></a></h3>')
    return withWords(rows, env.relativePath)
  }
  if (!env.relativePath.endsWith('Options.md')) return /<h1[^]*?<\/h1>/.exec(html)?.[0] ?? ''
  // A title that is the word alone, without the mark of what may be left out, is found first.
  return html.replaceAll(/<h[24][^]*?<\/h[24]>|\?(?= <a class="header-anchor")/g, '')
}

/**
 * A page with the words of readers in its headings.
 * @param {string} html
 * @param {string} file
 */
function withWords(html, file) {
  return html.replaceAll(/(<h[1-6] id="([^"]*)"[^]*?)(?= <a class="header-anchor")/g, (_, heading, id) => {
    const words = WORDS[id ? `${file}#${id}` : file]
    return words ? `${heading} (${words})` : heading
  })
}

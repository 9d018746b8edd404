// The site as VitePress builds it. Its pages are files of the repository (order.js has their order); what stands here is how they
// are found, linked and searched.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { defineConfig } from 'vitepress'
import { githubSlug } from '../anchors.js'
import { addressed, addressOf, filesOf, navigation, placeOf } from '../pages.js'
import { drawPictures, withPictures } from '../pictures.ts'
import { themeRepairs } from '../theme-repairs.js'
import { BASE } from '../portable.js'
import { SEARCH } from '../search-options.js'

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const manifest = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))
const { image, socialLinks, ...site } = addressed(manifest)
const { version } = JSON.parse(readFileSync(`${root}/packages/core/package.json`, 'utf8'))
const parts = navigation(root)
const files = filesOf(root)
const pictures = await drawPictures(BASE)
const description = 'Rate limiting for Node that is exact, in one process or across a fleet'

/** @param {{ path: string }} page */
const linkTo = ({ path }) => `/${path.replace(/\.md$/, '.html')}`

/** Markdown of the repository that is no page. */
const NOT_PAGES = [
  '**/node_modules/**',
  '!(docs|packages|site|*.md)/**',
  'site/!(pages|generated)/**',
  'packages/*/!(README).md',
  'packages/*/*/**',
  'packages/{bench,demo,faults,harness}/**',
  'docs/test/**',
  '!(README|CHANGELOG).md',
]

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
    ['meta', { name: 'theme-color', content: '#0f766e' }],
    ['meta', { property: 'og:title', content: 'Sluice' }],
    ['meta', { property: 'og:description', content: description }],
    ['meta', { property: 'og:image', content: image }],
  ],
  themeConfig: {
    siteTitle: 'Sluice',
    logo: '/favicon.svg',
    version,
    nav: [
      { text: 'Start', link: '/start.html' },
      { text: 'Playground', link: '/playground.html' },
      { text: 'Algorithms', link: '/algorithms.html' },
      { text: 'Reference', link: '/options.html' },
    ],
    sidebar: parts.map(({ title, pages }) => ({
      text: title,
      collapsed: !['Start', 'Choose', 'Run'].includes(title),
      items: pages.map((page) => ({ text: page.title, link: linkTo(page) })),
    })),
    outline: { level: [2, 3] },
    docFooter: { prev: 'Before', next: 'Next' },
    socialLinks,
    search: { provider: 'local', options: { miniSearch: SEARCH, _render: indexed } },
  },
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-default' },
    anchor: { slugify: githubSlug },
    config(md) {
      md.core.ruler.push('links', ({ tokens, env }) => relink(tokens, env))
      const draw = (state) => void (state.src = withPictures(state.src, pictures))
      md.core.ruler.before('normalize', 'pictures', draw)
    },
  },
  vite: {
    plugins: [themeRepairs()],
    define: {
      HERO_PICTURE: JSON.stringify(pictures.get('boundary')),
      WORKER_SCRIPT: JSON.stringify(await workerScript()),
    },
    publicDir: `${root}/site/public`,
    resolve: { alias: { '@playground': `${root}/site/playground` } },
    build: { chunkSizeWarningLimit: 4000, assetsInlineLimit: 0 },
    server: { fs: { allow: [root] } },
  },
})

/**
 * The worker of the playground as a text, from which the page makes a blob: a worker of a blob inherits what its page may not do.
 */
async function workerScript() {
  const entryPoints = [`${root}/site/playground/worker.ts`]
  const { outputFiles } = await build({
    entryPoints,
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
  })
  return outputFiles[0]?.text
}

/**
 * Links between files become links between pages; those to other files lead to the repository, or are plain text while its
 * address is empty.
 * @param {any[]} tokens
 * @param {{ path: string, realPath?: string }} env
 */
function relink(tokens, { path, realPath }) {
  if (!path) return // a title by itself
  const from = relative(root, realPath ?? path)
  let tag = 'a' // of the link that is open
  for (const child of tokens.flatMap((token) => token.children ?? [])) {
    if (child.type === 'link_close') child.tag = tag
    if (child.type !== 'link_open') continue
    tag = 'a'
    const href = child.attrGet('href') ?? ''
    if (/^(?:[a-z]+:|\/|#)/.test(href)) continue
    const address = addressOf(root, from, href, manifest.repository)
    if (address === '') tag = 'span'
    child.tag = tag
    child.attrs = address === '' ? [['title', href]] : [['href', address]]
  }
}

/**
 * The text that is searched. Of the generated reference titles alone: what options and errors are has pages of its own.
 * @param {string} source
 * @param {any} env
 * @param {any} md
 */
function indexed(source, env, md) {
  const html = md.render(source, env)
  if (env.frontmatter?.search === false) return ''
  // A word that is an option's name and a section's title too finds the option.
  if (env.relativePath === 'site/generated/options.md')
    return html.replaceAll(
      /<h2 id="([\w-]+)"[^]*?<\/h2>/g,
      (whole, name) => `${whole}<p>${`${name} `.repeat(9)}</p>`,
    )
  if (!env.relativePath.startsWith('docs/api/')) return html
  return /<h1[^]*?<\/h1>/.exec(html)?.[0] ?? ''
}

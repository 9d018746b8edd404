// The site as VitePress builds it. Its pages are files of the repository (order.js has their order); what stands here is how they
// are found, linked and searched.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'
import { githubSlug } from '../anchors.js'
import { filesOf, navigation, placeOf, targetOf } from '../pages.js'
import { drawPictures, withPictures } from '../pictures.ts'
import { themeRepairs } from '../theme-repairs.js'
import { virtualModules, workerOf } from '../virtual-modules.js'
import { BASE } from '../portable.js'
import { SEARCH } from '../search-options.js'

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const { repository, homepage = '' } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))
const { version } = JSON.parse(readFileSync(`${root}/packages/core/package.json`, 'utf8'))
const parts = navigation(root)
const files = filesOf(root)
const pictures = await drawPictures(BASE)
const description = 'Rate limiting for Node that is exact, in one process or across a fleet'

/** @param {{ path: string }} page */
const linkTo = ({ path }) => `/${path.replace(/\.md$/, '.html')}`

export default defineConfig({
  title: 'Sluice',
  description,
  lang: 'en',
  base: BASE,
  srcDir: '..',
  outDir: './dist',
  cacheDir: '../node_modules/.cache/vitepress',
  srcExclude: [
    '**/node_modules/**',
    '!(docs|packages|site|*.md)/**',
    'site/!(pages|generated)/**',
    ...notPages(),
  ],
  rewrites: Object.fromEntries(files.map((file) => [file, placeOf(file)])),
  metaChunk: true,
  router: { prefetchLinks: false },
  // Every link and anchor of the pages that were built is checked by links.js, also those that are made by components.
  ignoreDeadLinks: true,
  head: [
    ['link', { rel: 'icon', type: 'image/svg+xml', href: `${BASE}favicon.svg` }],
    ['meta', { name: 'theme-color', content: '#0f766e' }],
    ['meta', { property: 'og:title', content: 'Sluice' }],
    ['meta', { property: 'og:description', content: description }],
    ['meta', { property: 'og:image', content: `${homepage && `${homepage}/`}social.png` }],
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
    ...(repository && { socialLinks: [{ icon: 'github', link: repository }] }),
    search: {
      provider: 'local',
      options: {
        miniSearch: SEARCH,
        _render: indexed,
      },
    },
  },
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-default' },
    anchor: { slugify: githubSlug },
    config(md) {
      md.core.ruler.push('links', ({ tokens, env }) => relink(tokens, env))
      md.core.ruler.before(
        'normalize',
        'pictures',
        (state) => void (state.src = withPictures(state.src, pictures)),
      )
    },
  },
  vite: {
    plugins: [
      themeRepairs(),
      virtualModules({
        'playground-worker': () => workerOf(root),
        'hero-picture': () => pictures.get('boundary') ?? '',
      }),
    ],
    publicDir: `${root}/site/public`,
    resolve: { alias: { '@playground': `${root}/site/playground` } },
    build: { chunkSizeWarningLimit: 4000, assetsInlineLimit: 0 },
    server: { fs: { allow: [root] } },
  },
})

/** Markdown of the repository that is no page. */
function notPages() {
  return [
    'packages/*/!(README).md',
    'packages/*/*/**',
    'packages/{bench,demo,faults,harness}/**',
    'docs/test/**',
    '!(README|CHANGELOG).md',
  ]
}

/**
 * Links between files become links between pages; those to other files lead to the repository, or are plain text while its
 * address is empty.
 * @param {any[]} tokens
 * @param {{ path: string, realPath?: string }} env
 */
function relink(tokens, { path, realPath }) {
  const from = (realPath ?? path ?? '').slice(root.length + 1)
  if (from === '' || !existsSync(`${root}/${from}`)) return
  for (const token of tokens) {
    for (const child of token.children ?? []) {
      if (child.type !== 'link_open') continue
      const href = child.attrGet('href') ?? ''
      if (/^(?:[a-z]+:|\/|#)/.test(href)) continue
      const target = targetOf(root, from, href)
      if ('path' in target) child.attrSet('href', target.path)
      else if (repository) child.attrSet('href', `${repository}/blob/main/${target.file}`)
      else child.tag = 'span'
    }
    dropEmptyLinks(token.children ?? [])
  }
}

/** @param {any[]} children */
function dropEmptyLinks(children) {
  const open = []
  for (const child of children) {
    if (child.type === 'link_open') {
      open.push(child)
      if (child.tag !== 'span') continue
      child.attrs = [['title', child.attrGet('href')]]
    } else if (child.type === 'link_close') child.tag = open.pop()?.tag ?? 'a'
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

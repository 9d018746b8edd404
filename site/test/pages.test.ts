import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { runInNewContext } from 'node:vm'
import { brokenLinks } from '../checks.js'
import { githubSlug } from '../anchors.js'
import { firstPage } from '../first-page.js'
import { ORDER } from '../order.js'
import { addressed, addressOf, filesOf, navigation, placeOf } from '../pages.js'
import { drawPictures, withPictures } from '../pictures.js'
import { BASE, portablePage, portableScript } from '../portable.js'
import { VERSION } from '../playground/address.js'
import { ADAPTERS } from '../playground/code.js'
import { PRESETS } from '../playground/presets.js'
import { presetPage } from '../preset-page.js'
import { ranked } from '../search-options.js'

const ROOT = resolve(__dirname, '../..')
const FILES = filesOf(ROOT)

describe('the navigation', () => {
  it('has a place for every page of the repository', () => {
    // A new page of docs needs a line in site/order.js.
    expect(navigation(ROOT).flatMap(({ pages }) => pages).length).toBeGreaterThan(50)
  })

  it('has no place for a page that is not there', () => {
    const places = ORDER.flatMap(({ pages }) => pages).map((page) => page.replace('/*', ''))
    const written = places.filter((place) => !/^(?:site\/generated|docs\/api)\//.test(place))
    expect(written.filter((place) => !existsSync(join(ROOT, place)))).toEqual([])
  })

  it('refuses a page without a place, and names it', () => {
    const root = mkdtempSync(join(tmpdir(), 'sluice-pages-'))
    mkdirSync(join(root, 'docs'))
    mkdirSync(join(root, 'packages'))
    for (const file of ['README.md', 'CHANGELOG.md', 'docs/lost.md'])
      writeFileSync(join(root, file), '# Title\n')
    expect(() => navigation(root)).toThrow('no place in site/order.js: docs/lost.md')
    rmSync(root, { recursive: true })
  })

  it('gives no two pages one address', () => {
    const places = FILES.map(placeOf)
    expect(new Set(places).size).toBe(places.length)
  })
})

describe('a link', () => {
  it.each([
    ['docs/http.md', 'algorithms.md#gcra', '/algorithms.html#gcra'],
    ['docs/migrate/limiter.md', 'README.md', '/migrate/index.html'],
    ['README.md', 'docs/decisions/README.md', '/decisions/index.html'],
    ['docs/http.md', '../packages/core/README.md#bans', '/packages/core.html#bans'],
    ['README.md', 'packages/koa', '/packages/koa.html'],
  ])('of %s to %s leads to the page %s', (from, href, path) => {
    expect(addressOf(FILES, from, href)).toBe(path)
    expect(addressOf(FILES, from, href, 'https://host/owner/name')).toBe(path)
  })

  it.each([
    ['docs/http.md', '../examples/payments', 'examples/payments'],
    ['packages/koa/README.md', '../../LICENSE', 'LICENSE'],
  ])('of %s to %s leads to the repository, and nowhere while it has no address', (from, href, file) => {
    expect(addressOf(FILES, from, href, 'https://host/owner/name')).toBe(
      `https://host/owner/name/blob/main/${file}`,
    )
    expect(addressOf(FILES, from, href)).toBe('')
  })

  it('that leads nowhere, to no heading, or to one base path alone is named', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-links-'))
    writeFileSync(
      join(folder, 'a.html'),
      '<h1 id="top"></h1><a href="b.html#here">b</a><a href="#top">top</a>',
    )
    writeFileSync(
      join(folder, 'b.html'),
      '<p id="here"></p><a href="a.html#no">a</a><a href="c.html">c</a><img src="/x.png">',
    )
    expect(brokenLinks(folder)).toEqual([
      'b.html: a.html#no leads to no heading',
      'b.html: c.html leads nowhere',
      'b.html: /x.png fits one base path alone',
    ])
    rmSync(folder, { recursive: true })
  })

  it('to a heading has the anchor that code hosts give it', () => {
    expect(githubSlug('slidingLog (the default)')).toBe('slidinglog-the-default')
    expect(githubSlug('STORE_TIMEOUT')).toBe('store_timeout')
    expect(githubSlug('Would raising it help?')).toBe('would-raising-it-help')
  })
})

describe('a site', () => {
  it('without an address has no sitemap and no link to the repository', () => {
    expect(addressed({ repository: '' })).toEqual({ image: 'social.png', socialLinks: undefined })
  })

  it('with an address has a sitemap, whole addresses of pictures, and a link to the repository', () => {
    const [homepage, repository] = ['https://sluice.example/docs', 'https://host/owner/name']
    expect(addressed({ repository, homepage })).toEqual({
      image: `${homepage}/social.png`,
      socialLinks: [{ icon: 'github', link: repository }],
      sitemap: { hostname: `${homepage}/` },
    })
  })
})

describe('a page under any base', () => {
  it('refers to the others by its own depth', () => {
    const html = portablePage(
      `<html><head></head><a href="${BASE}a.html">a</a></html>`,
      'migrate/limiter.html',
    )
    expect(html).toContain('href="../a.html"')
    expect(html).not.toContain(BASE)
  })

  it('allows the scripts that are written into it, and no other', () => {
    const html = portablePage(
      '<html><head></head><script>one()</script><script type="module" src="x.js"></script></html>',
      'a.html',
    )
    const [, policy = ''] = /Content-Security-Policy" content="([^"]*)"/.exec(html) ?? []
    expect(policy).toMatch(/connect-src 'none'; worker-src blob:;.* script-src 'self'/)
    expect(policy.replace(/style-src[^;]*;/, '')).not.toContain('unsafe-')
    expect(policy.match(/'sha256-/g)).toHaveLength(2) // its own, and the one that says where the base is
  })

  it('has scripts that ask for the base as they run', () => {
    const code = `export const a = "${BASE}x.js", b = \`<a href="${BASE}y.html">\${a}</a>\``
    const run = `${portableScript(code).replace('export const', 'var')}; [a, b]`
    const texts = ['/deep/x.js', '<a href="/deep/y.html">/deep/x.js</a>']
    expect([...(runInNewContext(run, { window: { __base: '/deep/' } }) as string[])]).toEqual(texts)
  })
})

describe('the pictures', () => {
  it('are drawn of every preset, without scripts, and link to the playground', async () => {
    const pictures = await drawPictures('/base/')
    expect(pictures.size).toBe(PRESETS.length)
    for (const html of pictures.values()) {
      expect(html).toMatch(/<svg class="lane"[^]*<svg class="strip"[^]*href="/)
      expect(html).toContain(`href="/base/playground.html#${VERSION}&#38;`)
      expect(html).not.toMatch(/<script|NaN|undefined/)
    }
  })

  it('take the place of their comments', () => {
    const pictures = new Map([['edge', '<figure/>']])
    expect(withPictures('a\n<!-- playground: edge -->\nb', pictures)).toBe('a\n<figure/>\nb')
    expect(() => withPictures('<!-- playground: egde -->', pictures)).toThrow("no picture 'egde'")
  })
})

describe('the page of a preset', () => {
  const preset = PRESETS.find(({ id }) => id === 'boundary')!
  const FORM = /^---\n(?<matter>\{.*\})\n---\n(?<rest>[^]*)$/
  const partsOf = async (homepage?: string) => {
    const { matter, rest } = FORM.exec(await presetPage(preset, homepage))!.groups!
    const { title, description, head } = JSON.parse(matter!) as Record<'title' | 'description', string> & {
      head: [string, Record<'property' | 'content', string>][]
    }
    const og = Object.fromEntries(head.map(([, { property, content }]) => [property, content]))
    return { title, description, og, rest: rest! }
  }

  it('says what its limits do', async () => {
    const { title, description, og } = await partsOf()
    expect(title).toBe("A window's edge")
    expect(description).toMatch(
      /^fixedWindow\(\{ limit: 20, window: '10s' \}\): 120 served.*\. slidingLog\(\{.*\}\): 60 served/,
    )
    expect(og).toMatchObject({ 'og:title': "A window's edge · Sluice", 'og:description': description })
  })

  it('has a picture for social networks under the address of the site', async () => {
    expect((await partsOf()).og['og:image']).toBe('boundary.png')
    const { og } = await partsOf('https://sluice.example/docs')
    expect(og['og:image']).toBe('https://sluice.example/docs/playground/boundary.png')
  })

  it('is a picture where there are no scripts', async () => {
    const { rest } = await partsOf()
    const made = new Map([['boundary', '<figure></figure>\n']])
    expect(withPictures(rest, made)).toMatch(
      /<noscript>\n<h1>A window's edge<\/h1>\n.*\n<figure><\/figure>\n/,
    )
  })
})

it('every preset, and the site, has a picture for social networks of 1200 x 630', () => {
  const [folder, images] = [join(ROOT, 'site/public'), PRESETS.map(({ id }) => `playground/${id}.png`)]
  expect(readdirSync(join(folder, 'playground')).sort()).toEqual(PRESETS.map(({ id }) => `${id}.png`).sort())
  for (const image of ['social.png', ...images]) {
    const bytes = readFileSync(join(folder, image))
    expect([image, bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).toEqual([image, 1200, 630])
  }
})

describe('the first page', () => {
  it('has a picture of at most 12 kB', async () => {
    expect((await firstPage(ROOT)).get('picture')!.length).toBeLessThanOrEqual(12_000)
  })

  it('has a tab for each adapter', async () => {
    const tabs = [...(await firstPage(ROOT)).get('code')!.matchAll(/data-title="(\w+)"/g)]
    const adapters = ADAPTERS.filter((each) => !['outbound', 'core'].includes(each))
    expect(tabs.map(([, title]) => title!.toLowerCase()).sort()).toEqual(adapters.sort())
  })
})

describe('what is found', () => {
  const hit = (id: string, score: number) => ({ id: `/docs/${id}`, score })
  const [api, other] = [
    hit('api/core/interfaces/A.html#limit', 90),
    hit('api/http/interfaces/B.html#limit', 89),
  ]
  const [error, guide, faint] = [hit('errors.html#x', 60), hit('http.html', 40), hit('cli.html', 2)]

  it.each([
    ['has the best guide before interfaces', [api, other, error, guide], [guide, api, other, error]],
    ['has interfaces first where guides hardly have the word', [api, other, faint], [api, other, faint]],
    ['is as it was where a guide comes first', [guide, api], [guide, api]],
    ['is as it was where an error comes first', [error, api, guide], [error, api, guide]],
    ['may be nothing', [], []],
  ])('%s', (_, hits, order) => {
    expect(ranked(hits)).toEqual(order)
  })

  it.each(['changelog.html#fixed', 'migrate/#option-limit'])('has guides before %s', (id) => {
    expect(ranked([hit(id, 90), guide])).toEqual([guide, hit(id, 90)])
  })
})

import { decided } from './pictures.js'
import { totalsText } from './playground/draw.js'
import type { Preset } from './playground/presets.js'

/**
 * The playground with a preset, for readers who come by a link, as Markdown. Its description is what the limits do. Without scripts it is
 * their picture. `homepage` is the address of the site, if it has one, which pictures for social networks need.
 */
export async function presetPage({ id, title, fragment }: Preset, homepage?: string): Promise<string> {
  const { titles, results } = await decided(fragment)
  const description = results.map((each, i) => `${titles[i]}: ${totalsText(each)}`).join('. ')
  const image = homepage ? `${homepage}/playground/${id}.png` : `${id}.png`
  const og = Object.entries({ title: `${title} · Sluice`, description, image })
  const head = og.map(([name, content]) => ['meta', { property: `og:${name}`, content }])
  const matter = { layout: 'page', title, description, sidebar: false, aside: false, search: false, head }
  return `---
${JSON.stringify(matter)}
---

<script setup>
import Playground from '../../.vitepress/theme/playground.vue'
</script>

<div class="needs"><noscript>
<h1>${title}</h1>
<p>The playground needs scripts: allow them for this page. Its picture needs none.</p>
<!-- playground: ${id} -->
</noscript>
</div>

<Playground start="${id}" />
`
}

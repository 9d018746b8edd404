// What the theme's own templates lack for readers who listen or use the keyboard: a main landmark on pages without a text, one
// button a group of the sidebar, and no letter in the search button that its name has not.

/** By file: what stands there, and what is to. */
const REPAIRS = /** @type {Record<string, [string | RegExp, string][]>} */ ({
  'VPContent.vue': [
    [
      'id="VPContent"',
      `id="VPContent" :role="['home', 'page'].includes(frontmatter.layout) ? 'main' : undefined"`,
    ],
  ],
  'VPSidebarItem.vue': [
    [/class="caret"\s+role="button"\s+aria-label="toggle section"/, 'class="caret" aria-hidden="true"'],
    [/(class="caret"[^>]*?)\s+tabindex="0"/, '$1'],
  ],
  'VPNavBarSearchButton.vue': [
    ['<kbd class="DocSearch-Button-Key">K</kbd>', '<kbd class="DocSearch-Button-Key letter-k"></kbd>'],
  ],
})

/** A plugin that repairs them as they are compiled. A template that has changed ends the build. */
export function themeRepairs() {
  return {
    name: 'theme-repairs',
    enforce: /** @type {const} */ ('pre'),
    /**
     * @param {string} code
     * @param {string} id
     */
    transform(code, id) {
      const repairs = REPAIRS[/components\/(\w+\.vue)$/.exec(id)?.[1] ?? '']
      return repairs?.reduce((text, [from, to]) => {
        const repaired = text.replace(from, to)
        if (repaired === text)
          throw new Error(`${id} has changed: site/theme-repairs.js looks for ${String(from)}`)
        return repaired
      }, code)
    },
  }
}

// Repairs of the theme's own templates for readers who listen or use the keyboard: a main landmark on pages without a text, one
// button a group of the sidebar, a search button whose name has all of its letters, guides first in what is
// found, and no search for the excerpt of a page without sections.

const RANKED = "import { ranked } from '../../../../../../search-options.js'"

/** A file, what stands there, and what is to. */
const REPAIRS = /** @type {[string, string | RegExp, string][]} */ ([
  ['VPContent', 'id="VPContent"', '$& :role="/home|page/.test(frontmatter.layout) ? \'main\' : undefined"'],
  ['VPSidebarItem', /(class="caret")\s+role="button"[^>]*/, '$1 aria-hidden="true"'],
  ['VPLocalSearchBox', /(import localSearch.*)([^]*)(index\s*\.search\(.*\))/, `$1\n${RANKED}$2ranked($3)`],
  ['VPLocalSearchBox', /if \(!file\) throw/, "if (!id.includes('#')) return { id, mod: {} }\n$&"],
  ['VPNavBarSearchButton', /(class="DocSearch-Button-Key)">K</, '$1 letter-k"><'],
])

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
      const own = REPAIRS.filter(([name]) => id.endsWith(`components/${name}.vue`))
      for (const [, from, to] of own) {
        if (code.search(from) < 0)
          throw new Error(`${id} has changed: site/theme-repairs.js looks for ${from}`)
        code = code.replace(from, to)
      }
      return own.length > 0 ? code : undefined
    },
  }
}

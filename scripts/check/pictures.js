// Draws the pictures of docs/pictures from decisions of the library, and compares them, and the words that stand for them in
// the pages, with what is there (--write writes both). Needs the build.
import { readdirSync, readFileSync } from 'node:fs'
import { algorithms } from './pictures/algorithms.js'
import { outage } from './pictures/outage.js'
import { writeOrCompare } from './written.js'

const FOLDER = 'docs/pictures'
const PAGES = [
  'README.md',
  ...readdirSync('docs')
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]

const pictures = { algorithms: algorithms(), outage: await outage() }
/** @type {[file: string, content: string][]} */
const files = Object.entries(pictures).map(([name, { svg }]) => [`${FOLDER}/${name}.svg`, svg])
for (const page of PAGES) files.push([page, withWords(readFileSync(page, 'utf8'))])

const changed = writeOrCompare('pictures', files)
console.log(`${Object.keys(pictures).length} pictures, ${changed} files differ`)

/** A page with the words of each picture that it shows. @param {string} page */
function withWords(page) {
  return page.replace(/!\[[^\]]*\](?=\((?:docs\/)?pictures\/(\w+)\.svg\))/g, (shown, name) => {
    const words = Object.entries(pictures).find(([each]) => each === name)?.[1].alt
    return words ? `![${words}]` : shown
  })
}

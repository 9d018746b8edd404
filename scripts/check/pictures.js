// Draws the pictures of docs/pictures from decisions of the library, and compares them, and the words that stand for them in
// the pages, with what is there (--write writes both). Needs the build.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { algorithms } from './pictures/algorithms.js'
import { outage } from './pictures/outage.js'

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

const changed = files.filter(([file, content]) => !existsSync(file) || readFileSync(file, 'utf8') !== content)
if (process.argv.includes('--write')) {
  mkdirSync(FOLDER, { recursive: true })
  for (const [file, content] of changed) writeFileSync(file, content)
} else if (changed.length > 0) {
  for (const [file] of changed)
    console.error(`${file} is not what the library shows: npm run check -- pictures --write`)
  process.exitCode = 1
}
console.log(`${Object.keys(pictures).length} pictures, ${changed.length} files differ`)

/** A page with the words of each picture that it shows. @param {string} page */
function withWords(page) {
  return page.replace(/!\[[^\]]*\](?=\((?:docs\/)?pictures\/(\w+)\.svg\))/g, (shown, name) => {
    const words = Object.entries(pictures).find(([each]) => each === name)?.[1].alt
    return words ? `![${words}]` : shown
  })
}

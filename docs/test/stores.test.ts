import { conformance } from '@sluice/testing'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { mapStore } from './map-store.js'

conformance('a Map', mapStore, { lawRuns: 10 })

it('is the store that docs/stores.md shows', () => {
  const page = readFileSync(join(__dirname, '../stores.md'), 'utf8')
  expect(page).toContain(`\`\`\`ts\n${readFileSync(join(__dirname, 'map-store.ts'), 'utf8')}\`\`\`\n`)
})

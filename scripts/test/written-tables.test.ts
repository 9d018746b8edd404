import { readFileSync } from 'node:fs'
import { differences, tableIn, withTables } from '../verify/written-tables.js'

const SEEN = {
  clients: [
    ['client', 'version', 'nothing'],
    ['got', '14.6.6', '2, 30 s, 200'],
  ],
}
const EMPTY = '# Page\n<!-- clients -->\n<!-- end -->\n'

describe('a table that a command writes', () => {
  const page = withTables(EMPTY, SEEN)
  const other = (...row: string[]) => differences(page, { clients: [SEEN.clients[0]!, row] })

  it('is read as it was written', () => {
    expect(tableIn(page, 'clients')).toEqual(SEEN.clients)
    expect(differences(page, SEEN)).toEqual([])
  })

  it('may have a wait that chance has changed', () => {
    expect(other('got', '14.6.6', '2, 33 s, 200')).toEqual([])
  })

  it.each([
    ['another wait', ['got', '14.6.6', '2, 5 s, 200']],
    ['another number of requests', ['got', '14.6.6', '3, 30 s, 200']],
    ['another outcome', ['got', '14.6.6', '2, 30 s, throws 429']],
    ['another version', ['got', '15.0.0', '2, 30 s, 200']],
  ])('differs by %s', (_, row) => expect(other(...row)).toHaveLength(1))

  it('differs by a row that is not there, and by one that is there alone', () => {
    expect(other('ky', '1.0.0', '1, 200')).toHaveLength(2)
  })

  describe('of which chance decides', () => {
    const rowOf = (outcome: string) => ({ clients: [SEEN.clients[0]!, ['got', '14.6.6', outcome]] })
    const both = withTables(EMPTY, rowOf('429; or 502'))

    it.each([
      ['one of its outcomes', '502', 0],
      ['all of them', '429; or 502', 0],
      ['another one', '500', 1],
      ['another one beside one of its own', '429; or 500', 1],
    ])('has seen %s', (_, outcome, found) => {
      expect(differences(both, rowOf(outcome))).toHaveLength(found)
    })

    it('keeps those that were seen before', () => {
      expect(withTables(both, rowOf('502'))).toBe(both)
      expect(tableIn(withTables(both, rowOf('500')), 'clients')[1]).toEqual(rowOf('500').clients[1])
    })
  })

  it('needs its place in the page', () => {
    expect(() => withTables('# Page', SEEN)).toThrow('a place for clients')
  })
})

describe('the versions in docs/clients.md', () => {
  const { dependencies } = JSON.parse(
    readFileSync('packages/harness/clients/package.json', 'utf8'),
  ) as Record<'dependencies', Record<string, string>>
  const page = readFileSync('docs/clients.md', 'utf8')

  it.each([
    ['clients', 16],
    ['protocols', 8],
  ])('of the table of %s are those of the lock, or of Debian', (name, least) => {
    const [titles = [], ...rows] = tableIn(page, name)
    const versions = rows.map((row) => row[titles.indexOf('version')]!)
    const pinned = versions.filter((version) => Object.values(dependencies).includes(version))
    expect(pinned.length).toBeGreaterThanOrEqual(least)
    expect(versions.filter((version) => !pinned.includes(version) && !/^Node |-\d/.test(version))).toEqual([])
  })
})

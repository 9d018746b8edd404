// Run in the copy: what the playground, the picture and the benches show of the further algorithm.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { algorithms } from '../../check/pictures/algorithms.js'
import { onSources } from '../../subjects.js'
import { run as runProgram } from '../../test/further-algorithm/copy.js'

/** Of sources that are compiled with others. @param {string} path */
const load = (path) => import(`../../../${path}`)
const [{ scenarioAt }, { columnsHtml }, { run, shownTime }, { readScenario }] = await Promise.all(
  ['address', 'draw', 'run', 'scenario'].map((name) => load(`site/playground/${name}.ts`)),
)

const { memoryPaths } = await load('packages/bench/src/before/memory-paths.js')

const { scenario } = readScenario(
  scenarioAt('2&kind=poisson&rate=3&span=10m&limits=wideWindow(limit:10,window:1m,width:triple)').scenario,
)
const columns = await run(scenario)
const [{ promise, most, isAligned }] = columns[0].policies
assert.deepEqual({ promise, isAligned }, { promise: 20, isAligned: true })
assert(most > 0 && most <= promise)
assert.match(columnsHtml(columns, shownTime(scenario))[0], /<svg/)
console.log(`playground: at most ${most} in any minute, of ${promise} that are promised`)

const [, passed] = /; wideWindow (\d+)\.$/.exec(algorithms().alt) ?? []
assert.equal(passed, '10')
console.log(`picture: ${passed} in 10 seconds, without a caption`)

for (const label of ['wide window', 'wide window, triple']) {
  assert(memoryPaths[`decide, ${label}`] && memoryPaths[`consume, ${label}`])
  const bytes = runProgram('.', ...onSources, 'packages/bench/src/memory/size.js', '1000', label)
  assert.match(bytes, /^wide window.* \d+\n$/)
  console.log(`memory-size: ${bytes.trim()}`)
}
// Its exit code says whether our algorithms meet their goals on this machine.
const args = [...onSources, 'packages/bench/src/redis-cpu/main.js', '1']
const { stdout: table } = spawnSync(process.execPath, args, { encoding: 'utf8' })
const lines = table.match(/^\| wide window.*$/gm) ?? []
assert.equal(lines.length, 2)
for (const line of lines) console.log(`redis-cpu: ${line}`)

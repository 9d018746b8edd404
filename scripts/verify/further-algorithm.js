// The playground and the benches with one algorithm more than there are, in a copy of the sources: npm run verify -- further-algorithm
import { copyWithOneMore, removeCopy, run } from '../test/further-algorithm/copy.js'
import { onSources } from '../subjects.js'

const folder = copyWithOneMore()
try {
  console.log(run(folder, ...onSources, 'scripts/verify/further-algorithm/figures.js').trimEnd())
} finally {
  removeCopy(folder)
}

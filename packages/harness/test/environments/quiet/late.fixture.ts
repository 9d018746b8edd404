import { warnProcess } from '@sluice/core/internal'

afterAll(() => warnProcess('OF_THE_FILE', 'a text'))
it('passes: a file that warns after its tests', () => {})

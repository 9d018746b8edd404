import { writeSync } from 'node:fs'

it('passes: what goes past the streams fails the run', () => void writeSync(2, 'past the streams\n'))

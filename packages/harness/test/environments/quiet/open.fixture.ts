import { createServer } from 'node:net'

it('passes: a file that leaves a server open', () => void createServer().listen(0, '127.0.0.1'))

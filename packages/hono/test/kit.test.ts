import { adapterKit } from '@sluice/harness/adapters'
import { honoAdapter } from './kit-app.js'

// The server for Node prints whatever breaks a response off.
beforeAll(() => void jest.spyOn(console, 'error').mockReturnValue())
afterAll(() => jest.restoreAllMocks())

adapterKit(honoAdapter)

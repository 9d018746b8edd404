import { adapterKit } from '@sluice/harness/adapters'
import { fetchAdapter, nodeAdapter } from './kit-app.js'

// The server for fetch handlers prints whatever breaks a response off.
beforeAll(() => void jest.spyOn(console, 'error').mockReturnValue())
afterAll(() => jest.restoreAllMocks())

adapterKit(nodeAdapter)
adapterKit(fetchAdapter)

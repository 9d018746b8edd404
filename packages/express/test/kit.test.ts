import { adapterKit } from '@sluice/harness/adapters'
import { adapters } from './kit-app.js'

for (const adapter of adapters) adapterKit(adapter)

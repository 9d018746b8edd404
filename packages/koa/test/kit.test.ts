import { adapterKit } from '@sluice/harness/adapters'
import { koaAdapter } from './kit-app.js'

adapterKit(koaAdapter)

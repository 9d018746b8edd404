import { adapterKit } from '@sluice/harness/adapters'
import { fastifyAdapter } from './kit-app.js'

adapterKit(fastifyAdapter)

import { adapterKit } from '@sluice/harness/adapters'
import { fastifyAdapter } from './kit-platforms.js'

adapterKit(fastifyAdapter)

import { adapterKit } from '@sluice/harness/adapters'
import { expressAdapter } from './kit-platforms.js'

adapterKit(expressAdapter)

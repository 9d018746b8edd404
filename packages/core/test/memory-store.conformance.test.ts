import { conformance } from '@sluice/testing/conformance'
import { memoryStore } from '../src/index.js'

conformance('memory', (clock) => memoryStore({ clock }))

import { conformance } from '@sluice/testing/internal'
import { memoryStore } from '../../../src/index.js'

conformance('memory', (clock) => memoryStore({ clock }))

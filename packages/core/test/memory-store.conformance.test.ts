import { memoryStore } from '../src/index.js'
import { conformance } from './conformance/kit.js'

conformance('memory', (clock) => memoryStore({ clock }))

// Lets Node run the TypeScript sources: node --import ./scripts/sources/register.js FILE.ts. Tests start their processes so.
import { register } from 'node:module'

register('./hooks.js', import.meta.url)

// What a package manager of another project gets from this process: nothing that `npm run` says to its children, which is for
// npm alone, and for all of them the registry that npm is set to use.
import { npmOutput } from '../npm.js'

const registry = npmOutput(['config', 'get', 'registry']).trim()

/** @type {NodeJS.ProcessEnv} */
export const ENVIRONMENT = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:npm|yarn)_/i.test(name))),
  npm_config_registry: registry,
  YARN_NPM_REGISTRY_SERVER: registry.replace(/\/$/, ''),
  YARN_ENABLE_TELEMETRY: '0',
  YARN_ENABLE_IMMUTABLE_INSTALLS: 'false', // there is no lock in an empty project, in CI either
}

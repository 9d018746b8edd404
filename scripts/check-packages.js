// Checks each public package as it would be published: its exports and files (publint), its types under
// every module system (attw). Prints only what is wrong. Needs the build and, for the tools, `npm run`.
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

const folders = readdirSync('packages').map((name) => `packages/${name}`)
const checks = folders
  .filter(isPublic)
  .flatMap((folder) => [
    run('publint', 'run', folder, '--strict'),
    run('attw', '--pack', folder, '--profile', 'node16', '--no-emoji'),
  ])
process.exitCode = (await Promise.all(checks)).every(Boolean) ? 0 : 1

/** @param {string} folder */
function isPublic(folder) {
  return JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')).private !== true
}

/**
 * @param {string} tool
 * @param {string[]} args
 */
function run(tool, ...args) {
  return new Promise((resolve) => {
    execFile(tool, args, (error, stdout, stderr) => {
      if (error) console.error(`${tool} ${args.join(' ')}\n${error.message}\n${stdout}${stderr}`)
      resolve(!error)
    })
  })
}

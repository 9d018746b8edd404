// Checks what is published: npm run check -- SUBJECT.
import { runSubject } from './subjects.js'

runSubject('check', {
  installs: {
    about: 'each package, packed and installed alone, under every style of import',
    needs: ['build'],
    command: ['scripts/check/installs.js'],
  },
  packages: {
    about: 'the exports, types, tarball and README of each package, and what of the sources is unused',
    needs: ['build'],
    command: ['scripts/check/packages.js'],
  },
  api: {
    about:
      'the public surface of each package: its report, a changeset where it changed, the reference in docs/api',
    needs: ['build'],
    install: 'scripts/check/api',
    command: ['scripts/check/api/run.js'],
  },
  licences: {
    about: 'that run-time dependencies have a permissive licence and run nothing when they are installed',
    needs: [],
    command: ['scripts/check/licences.js'],
  },
  names: {
    about: 'that no name of a type stands for two things',
    needs: [],
    command: ['scripts/check/names.js'],
  },
  mistakes: {
    about: 'that each mistake of verify -- sabotage still has its place in the sources',
    needs: [],
    command: ['scripts/check/mistakes.js'],
  },
  paths: {
    about: 'file names, folders, signals and programs that Windows lacks',
    needs: [],
    command: ['scripts/check/paths.js'],
  },
  workflows: {
    about: "GitHub's workflows by actionlint, and that they call only what runs here",
    needs: [],
    command: ['scripts/check/workflows.js'],
  },
  metrics: {
    about:
      'that docs/metrics.md holds the table of instruments, and that promtool takes the alerts and their tests',
    needs: ['build'],
    command: ['scripts/ensure/prometheus.js', process.execPath, 'scripts/check/metrics.js'],
  },
  lua: {
    about: 'luacheck on the scripts as Redis gets them',
    needs: ['build'],
    command: ['scripts/ensure/lua.js', process.execPath, 'scripts/check/lua.js'],
  },
})

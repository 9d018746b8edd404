#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { main } from '../dist/esm/terminal/main.js'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
process.exitCode = await main(process.argv, version)

// npm run bench -- PART [options]: parts.js. npm run bench -- before [ref]: before/compare.js.
const [first, ...rest] = process.argv.slice(2)
if (first === 'before') {
  const { compare } = await import('./before/compare.js')
  process.exitCode = await compare(rest).catch((error) => {
    console.error(error)
    return 2 // 1 says that a path missed the bar
  })
} else if (first === 'pages') {
  const { writePages } = await import('./parts.js')
  writePages()
} else {
  const { measureParts } = await import('./parts.js')
  await measureParts(first === 'all' ? rest : process.argv.slice(2))
}

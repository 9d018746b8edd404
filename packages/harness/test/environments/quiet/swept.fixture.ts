it('passes: a store that is left reads its clock after the file, and Jest warns of it', () => {
  const clock = { test: 0 }
  Object.assign(globalThis, { clock })
  setTimeout(() => void clock.test, 300).unref()
})

it('passes: it takes longer than the other file, whose worker waits', async () => {
  await new Promise((resolve) => setTimeout(resolve, 1500))
})

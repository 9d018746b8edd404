import { AsyncLocalStorage } from 'node:async_hooks'
import OwnStorages from '../../src/environments/own-storages.js'

type Parameters = ConstructorParameters<typeof OwnStorages>

describe('an AsyncLocalStorage', () => {
  it.each([
    ['run', (storage: AsyncLocalStorage<string>) => storage.run('value', () => {})],
    ['enterWith', (storage: AsyncLocalStorage<string>) => storage.enterWith('value')],
  ])('that a file used by %s ends with the file', async (_, use) => {
    const storage = new AsyncLocalStorage<string>()
    const disable = jest.spyOn(storage, 'disable')
    const environment = await begun()
    use(storage)
    expect(disable).not.toHaveBeenCalled()
    await environment.teardown()
    expect(disable).toHaveBeenCalledTimes(1)
    expect(storage.getStore()).toBeUndefined()
  })

  it('works as ever until then', async () => {
    const storage = new AsyncLocalStorage<string>()
    const environment = await begun()
    const seen = storage.run('value', (suffix: string) => storage.getStore() + suffix, ' of a file')
    await environment.teardown()
    expect(seen).toBe('value of a file')
  })
})

async function begun(): Promise<OwnStorages> {
  const environment = new OwnStorages(
    { projectConfig: { testEnvironmentOptions: {} }, globalConfig: {} } as Parameters[0],
    {} as Parameters[1],
  )
  await environment.setup()
  return environment
}

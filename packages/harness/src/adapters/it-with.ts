import type { Adapter, Feature } from './adapter.js'

type Declare = Pick<jest.It, 'each'> & ((title: string, run: () => Promise<void>, timeout?: number) => void)

/** `it`; where an adapter lacks the feature, its cases are skipped and their titles have the reason. */
export function itWith({ lacks }: Pick<Adapter<never, never>, 'lacks'>, feature?: Feature): Declare {
  const reason = feature && lacks?.[feature]
  if (reason === undefined) return it
  const titled = (title: string): string => `${title} [n/a: ${reason}]`
  const skip = (title: string, run: () => Promise<void>): void => it.skip(titled(title), run)
  const each = (table: readonly unknown[]) => (title: string, run: jest.EmptyFunction) =>
    it.skip.each(table)(titled(title), run)
  return Object.assign(skip, { each: each as unknown as jest.Each })
}

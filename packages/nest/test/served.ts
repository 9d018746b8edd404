import type { INestApplication, ModuleMetadata } from '@nestjs/common'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { Test } from '@nestjs/testing'
import type { AddressInfo } from 'node:net'

/** For `describe.each`: whatever holds on one platform holds on the other. */
export const PLATFORMS = [
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
] as const

const open: INestApplication[] = []

/** Listens on a free port until `closeApps`. */
export async function serve(
  metadata: ModuleMetadata,
  http: ExpressAdapter | FastifyAdapter = new ExpressAdapter(),
  prepare: (app: INestApplication) => unknown = () => {},
): Promise<{ app: INestApplication; origin: string }> {
  const module = await Test.createTestingModule(metadata).compile()
  const app = module.createNestApplication(http as ExpressAdapter, { logger: false })
  prepare(app)
  open.push(app)
  await app.listen(0, '127.0.0.1')
  const { port } = app.getHttpServer().address() as AddressInfo
  return { app, origin: `127.0.0.1:${port}` }
}

export async function closeApps(): Promise<void> {
  await Promise.all(open.splice(0).map((app) => app.close()))
}

export interface Answer {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: any
}

export async function get(origin: string, path = '/', headers: Record<string, string> = {}): Promise<Answer> {
  const res = await fetch(`http://${origin}${path}`, { headers: { connection: 'close', ...headers } })
  const text = await res.text()
  const json = res.headers.get('content-type')?.includes('json')
  return {
    status: res.status,
    headers: Object.fromEntries(res.headers),
    body: json ? JSON.parse(text) : text,
  }
}

export async function statuses(origin: string, ...paths: readonly string[]): Promise<number[]> {
  const all: number[] = []
  for (const path of paths) all.push((await get(origin, path)).status)
  return all
}

import fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'

const apps: FastifyInstance[] = []

/** An application that listens on a free port until `closeApps`, after what `prepare` has set up. */
export async function serve(
  prepare: (app: FastifyInstance) => unknown,
  options: FastifyServerOptions = {},
): Promise<FastifyInstance> {
  const app = fastify({ forceCloseConnections: true, ...options })
  apps.push(app)
  await prepare(app)
  await app.listen({ port: 0, host: '127.0.0.1' })
  return app
}

export async function closeApps(): Promise<void> {
  await Promise.all(apps.splice(0).map((app) => app.close()))
}

export function ask(app: FastifyInstance, path: string, init?: RequestInit): Promise<Response> {
  return fetch(new URL(path, app.listeningOrigin), init)
}

/** The statuses of requests sent one after another. */
export async function statuses(app: FastifyInstance, ...paths: string[]): Promise<number[]> {
  const statuses: number[] = []
  for (const path of paths) statuses.push((await ask(app, path)).status)
  return statuses
}

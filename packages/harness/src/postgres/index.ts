// Real servers of Postgres on loopback, for tests and measurements; each is killed at the latest when this process ends.
export { type PgBouncer, type PgBouncerOptions, startPgBouncer } from './pgbouncer.js'
export { type PostgresOptions, type PostgresServer, startPostgres } from './postgres-server.js'

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { BUS_OFFSET } from './free-port.js'
import { BASICS, launch, type RedisServer } from './redis-server.js'

export interface SecureRedis extends RedisServer {
  /** Where it speaks TLS, beside `port`. */
  readonly securePort: number
  /** The file of its certificate, which is its own authority. */
  readonly caFile: string
}

/** Starts a server that also speaks TLS for 127.0.0.1, with a certificate that only its own file vouches for. */
export async function startSecureRedis(): Promise<SecureRedis> {
  let caFile = ''
  const server = await launch((port, folder) => {
    const keyFile = join(folder, 'key.pem')
    caFile = join(folder, 'cert.pem')
    const made = ['-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', keyFile, '-out', caFile]
    const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
    execFileSync('openssl', ['req', '-x509', ...made, ...subject], { stdio: 'ignore' })
    const ports = ['--port', `${port}`, '--tls-port', `${port + BUS_OFFSET}`]
    const files = ['--tls-cert-file', caFile, '--tls-key-file', keyFile]
    return [...BASICS, ...ports, ...files, '--tls-auth-clients', 'no']
  }, BUS_OFFSET)
  return Object.assign(server, { securePort: server.port + BUS_OFFSET, caFile })
}

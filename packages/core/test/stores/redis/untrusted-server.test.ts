import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { createServer as createTlsServer } from 'node:tls'
import { build } from 'esbuild'

jest.setTimeout(60_000)

const OWN = join(__dirname, '../../../src/stores/redis/connection/own.ts')
/** A record of TLS that none may send in clear once both sides have keys. */
const ALERT = Buffer.from([21, 3, 3, 0, 2, 2, 50])

// An error of a socket that nothing hears ends the process, and so is seen in a process of its own.
it('a server whose certificate is not trusted ends no process by an error after it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-untrusted-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const made = ['-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=127.0.0.1', '-keyout', key, '-out', cert]
  execFileSync('openssl', ['req', '-x509', ...made], { stdio: 'ignore' })
  const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) })
  const front = createServer((client) => {
    const behind = connect((server.address() as AddressInfo).port).on('error', () => {})
    client.on('error', () => {}).on('close', () => behind.destroy())
    client.pipe(behind)
    behind.once('data', (flight: Buffer) => client.write(Buffer.concat([flight, ALERT])))
  })
  server.on('tlsClientError', () => {})
  await Promise.all([server, front].map((each) => once(each.listen(0, '127.0.0.1'), 'listening')))

  const program = join(folder, 'program.cjs')
  const { port } = front.address() as AddressInfo
  const contents = `import { OwnConnection } from '${OWN}'
    const connection = new OwnConnection('rediss://127.0.0.1:${port}')
    connection.eval('return 1', [], []).catch(({ message }) => console.log(message))
    setTimeout(() => process.exit(0), 500)`
  await build({
    stdin: { contents, resolveDir: __dirname },
    outfile: program,
    bundle: true,
    platform: 'node',
  })
  const child = spawn(process.execPath, [program])
  const [out, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  server.close()
  front.close()
  rmSync(folder, { recursive: true })
  expect({ errors, code }).toEqual({ errors: '', code: 0 })
  expect(out).toContain('Redis did not decide')
})

import type { Adapter, App } from './adapter.js'
import { itWith } from './it-with.js'
import { stopped, warningsOf } from './limits.js'
import type { Serve } from './site.js'

/**
 * The client of a gateway as the gateway writes it, the key that it is counted under, and what writes so: documentation, or a
 * report of it.
 */
const FORMS: readonly (readonly [string, string, string])[] = [
  ['203.0.113.7', 'ip:203.0.113.7', 'nginx, $proxy_add_x_forwarded_for'],
  ['203.0.113.7:50123', 'ip:203.0.113.7', 'Azure Application Gateway; AWS ALB, xff_client_port'],
  ['2001:db8:1:2:3:4:5:6', 'ip:2001:db8:1:2::/64', 'Google Cloud Run, spring-framework#26748'],
  ['[2001:db8:1:2::1]', 'ip:2001:db8:1:2::/64', 'FortiGate, tornado#3667'],
  ['[2001:db8:1:2::1]:38792', 'ip:2001:db8:1:2::/64', 'IIS ARR, gin#4572'],
  ['2001:db8:1:2:3:4:5:6:443', 'ip:2001:db8:1:2::/64', 'an address and a port, joined by a colon'],
  ['2001:db8:1:2::1:50123', 'ip:2001:db8:1:2::/64', 'the same, of an address that is written short'],
  ['::ffff:203.0.113.7', 'ip:203.0.113.7', 'proxies on a socket for IPv4 and IPv6'],
  ['::ffff:203.0.113.7:12345', 'ip:203.0.113.7', 'iisnode, aspnet/BasicMiddleware#302'],
  ['[::ffff:203.0.113.7]:443', 'ip:203.0.113.7', 'the same, as RFC 3986 writes it'],
  ['2001:db8:1:2::1%eth0', 'ip:2001:db8:1:2::/64', 'RFC 4007, a zone'],
  ['[2001:db8:1:2::1%25eth0]:80', 'ip:2001:db8:1:2::/64', 'RFC 6874, a zone'],
  ['"203.0.113.7:47011"', 'ip:203.0.113.7', 'RFC 7239, a quoted node'],
  ['"[2001:db8:1:2::1]:4711"', 'ip:2001:db8:1:2::/64', 'RFC 7239, a quoted node'],
  ['"[2001:db8:1:2::1]:_p0rt"', 'ip:2001:db8:1:2::/64', 'RFC 7239, an obfuscated port'],
  ['for=203.0.113.7;proto=https', 'ip:203.0.113.7', 'RFC 7239, an element of Forwarded'],
  ['proto=https;for="[2001:db8:1:2::1]:47"', 'ip:2001:db8:1:2::/64', 'RFC 7239, section 4'],
]

/** What a gateway writes where it has no address of its client, or hides it. */
const NAMELESS: readonly (readonly [string, string])[] = [
  ['unknown', 'RFC 7239; Squid, forwarded_for off'],
  ['_hidden', 'RFC 7239, section 6.3'],
  ['"_SEVKISEK"', 'RFC 7239, section 6.3'],
  ['for=unknown', 'RFC 7239'],
  ['unix:', 'nginx on a Unix socket'],
  ['@', 'Go on a Unix socket, caddy#7463'],
]

/** A trusted gateway, 10.1.2.3 or fd00:1:2:3:4:5:6:7, as the next one writes it. */
const HOPS: readonly string[] = [
  '10.1.2.3',
  '10.1.2.3:443',
  '"10.1.2.3:443"',
  '::ffff:10.1.2.3',
  '::ffff:10.1.2.3:443',
  '[::ffff:10.1.2.3]:443',
  'for=10.1.2.3;proto=http',
  'fd00:1:2:3:4:5:6:7',
  '[fd00:1:2:3:4:5:6:7]',
  '[fd00:1:2:3:4:5:6:7]:443',
  'fd00:1:2:3:4:5:6:7:443',
  '10.1.2.3:443, [fd00:1:2:3:4:5:6:7]:443',
]

/** A caller that is no gateway, as the first trusted one writes him: he is near to one, or stands for one. */
const IMPOSTORS: readonly string[] = [
  '203.0.113.7:443',
  '110.1.2.3:443',
  '2002:a01:203::1', // 6to4 of 10.1.2.3
  '[2002:a01:203::1]:443',
  '64:ff9b::10.1.2.3', // NAT64 of it
  '64:ff9b::10.1.2.3:443',
  '[fe00:1:2:3:4:5:6:7]:443',
  '2001:db8:1:2:3:4:5:fd00:443',
  'unknown',
  '_10.1.2.3',
  'unix:10.1.2.3',
  '010.1.2.3:443',
  '10.1.2.3:443:443',
  '10.1.2.3:443.',
  '[10.1.2.3:443',
  '"10.1.2.3:443',
  '10.1.2.3;443',
  'by=10.1.2.3;proto=http',
  'host="x;for=10.1.2.3";for=203.0.113.7',
  'proto=http;host=x;for=10.1.2.3',
  'for=203.0.113.7;by=10.1.2.3',
  'localhost:443',
]

const TRUSTED = ['127.0.0.1', '10.0.0.0/8', 'fd00::/8']
const SOME = 'trusting a number of proxies'
const LISTED = 'trusting proxies by address'

/** Declares the tests that every adapter has to pass about the forms in which gateways write addresses. */
export function gatewayCases<Req, Res>(adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('the client of a gateway', () => {
    itWith(adapter, SOME).each(FORMS)('that is written %s is counted as %s: %s', async (text, key) => {
      expect(await counted(1, [`198.51.100.1, ${text}`])).toEqual({ keys: [key], warnings: [] })
    })

    itWith(adapter, LISTED).each(FORMS)('that is listed as %s is counted as %s: %s', async (text, key) => {
      const lists = [`198.51.100.1, ${text}, 10.1.2.3:443`]
      expect(await counted(TRUSTED, lists)).toEqual({ keys: [key], warnings: [] })
    })

    itWith(adapter, SOME).each(NAMELESS)(
      'that is written %s shares the limit of its connection, which is reported: %s',
      async (text) => {
        const lists = [`198.51.100.1, ${text}`, `198.51.100.2, ${text}`]
        expect(await counted(1, lists)).toEqual({ keys: ['ip:127.0.0.1'], warnings: ['ADDRESS_UNKNOWN'] })
      },
    )

    itWith(adapter, LISTED).each(HOPS.map((hop) => [hop]))('is found behind %s', async (hop) => {
      const lists = [`198.51.100.1, 203.0.113.7:50123, ${hop}`, `198.51.100.1, [2001:db8::1]:50123, ${hop}`]
      const keys = ['ip:203.0.113.7', 'ip:2001:db8::/64']
      expect(await counted(TRUSTED, lists)).toEqual({ keys, warnings: [] })
    })

    itWith(adapter, LISTED)(
      'is not looked for behind a proxy that no list names, which is reported',
      async () => {
        const lists = ['198.51.100.1', '198.51.100.2:443']
        const expected = { keys: ['ip:127.0.0.1'], warnings: ['FORWARDED_NOT_TRUSTED'] }
        expect(await counted(['10.0.0.0/8'], lists)).toEqual(expected)
      },
    )

    itWith(adapter, LISTED).each(IMPOSTORS.map((text) => [text]))(
      'has one limit, whatever it forges, as %s',
      async (text) => {
        const lists = [
          '198.51.100.1',
          '198.51.100.2:443, 10.1.2.3:443',
          '"198.51.100.3", "10.1.2.3',
          '198.51.100.4, 10.1.2.3:443, [fd00::1]:443',
          'for=198.51.100.5;by="',
        ].map((forged) => `${forged}, ${text}, 10.1.2.3:443`)
        const { keys } = await counted(TRUSTED, lists)
        expect(keys).toEqual([expect.not.stringMatching(/198\.51\.100/)])
      },
    )
  })

  /** The keys under which requests with these values of X-Forwarded-For are counted, and which warnings are reported. */
  async function counted(proxyTrust: App<Req, Res>['proxyTrust'], lists: readonly string[]) {
    const limiter = stopped(99)
    const [warnings, keys] = [warningsOf(limiter), new Set<string>()]
    limiter.on('decision', ({ key }) => void keys.add(key))
    const site = await serve([{ limiter }], { proxyTrust })
    await site.statuses(lists.map((list) => ({ headers: { 'X-Forwarded-For': list } })))
    return { keys: [...keys], warnings }
  }
}

import { createLimiter, memoryStore, slidingLog } from '@sluice/core'
import { FakeClock } from '@sluice/testing'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { limitTool } from '../../recipes/mcp-tools.js'

describe('the recipe for MCP tools', () => {
  const clock = new FakeClock()
  const store = memoryStore({ clock: clock.now })
  const limiter = createLimiter({ name: 'tools', policies: [slidingLog({ limit: 1, window: '1m' })], store })

  it('answers a call over the limit of its tool and grant with an error that says when to call again', async () => {
    const ada = await clientOf('ada')
    const ben = await clientOf('ben')
    expect(await ada('search')).toEqual({ text: 'search ran', isError: undefined })
    const denied = await ada('search')
    expect(denied.isError).toBe(true)
    expect(denied.text).toContain('Call it again in 60 seconds')
    expect([(await ada('fetch')).isError, (await ben('search')).isError]).toEqual([undefined, undefined])
    clock.pass(60_000)
    expect((await ada('search')).isError).toBeUndefined()
  })

  /** Calls tools of one server as a client to which a token was issued. */
  async function clientOf(clientId: string) {
    const server = new McpServer({ name: 'tools', version: '1.0.0' })
    for (const tool of ['search', 'fetch']) {
      const run = async () => ({ content: [{ type: 'text' as const, text: `${tool} ran` }] })
      server.registerTool(tool, { description: tool, inputSchema: {} }, limitTool(limiter, tool, run))
    }
    const [ours, theirs] = InMemoryTransport.createLinkedPair()
    const send = ours.send.bind(ours)
    const authInfo = { token: 't', clientId, scopes: [] }
    ours.send = (message, options) => send(message, { ...options, authInfo })
    const client = new Client({ name: 'agent', version: '1.0.0' })
    await Promise.all([server.connect(theirs), client.connect(ours)])
    return async (name: string) => {
      const { content, isError } = await client.callTool({ name, arguments: {} })
      const [first] = content as { text: string }[]
      return { text: first!.text, isError: isError as boolean | undefined }
    }
  }
})

import { type Limiter } from '@sluice/core'
import { joinKey } from '@sluice/http'

/*
 * A limit for the tools of an MCP server, for each tool and grant: the client that a token was issued to. A call over the limit is an
 * error of the tool and not of the protocol, because the model sees the former, and can wait or do something else.
 */

/** What the SDK passes to a tool beside its arguments, as far as it is read. */
interface Extra {
  readonly authInfo?: { readonly clientId: string } | undefined
}

/** The callback of a tool: `server.registerTool('search', { inputSchema }, limitTool(limiter, 'search', search))`. */
export function limitTool<Args, E extends Extra, Result>(
  limiter: Limiter,
  tool: string,
  callback: (args: Args, extra: E) => Promise<Result>,
) {
  return async function limitedTool(args: Args, extra: E) {
    const grant = extra.authInfo?.clientId ?? 'anonymous'
    const { allowed, retryAfterMs, limit } = await limiter.consume(joinKey(tool, grant))
    if (allowed) return callback(args, extra)
    const seconds = Math.ceil(retryAfterMs / 1000)
    const when =
      seconds === Infinity
        ? 'It is not available to you.'
        : `Call it again in ${seconds} seconds, and not before.`
    const text = `The tool ${tool} was not run: its limit of ${limit} calls is used up. ${when} Other tools can be called now.`
    return { isError: true, content: [{ type: 'text' as const, text }] }
  }
}

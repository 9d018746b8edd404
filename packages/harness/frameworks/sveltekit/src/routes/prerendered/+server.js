// The hook runs for it in the build, without a caller.
export const prerender = true
export const GET = () => Response.json({ hello: 'build' })

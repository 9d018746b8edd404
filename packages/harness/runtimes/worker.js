// Run by workerd.
import { checkCore, checkHono, checkLimited, honoApp } from './check.js'

const app = honoApp()

export default {
  /** @param {Request} request */
  async fetch(request) {
    if (new URL(request.url).pathname === '/') return app.fetch(request)
    return Response.json({ core: await checkCore(), hono: await checkHono(), limited: await checkLimited() })
  },
}

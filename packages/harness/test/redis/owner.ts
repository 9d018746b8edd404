import { startRedis } from '@sluice/harness/redis'

/* Starts a server, prints its port and waits for its own end. */
void startRedis().then((server) => console.log(server.port))
setInterval(() => {}, 1000)

const TABLE = `
Situations | boundary | A window's edge | algorithms.html#fixedwindow | fixedWindow | kind=edge&window=10s&burst=20&span=60s&limits=fixedWindow(limit:20,window:10s)&limits=slidingLog(limit:20,window:10s)
Situations | github | GitHub's 5,000 an hour | https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api | GitHub's documentation | kind=poisson&rate=1.6&span=3h&limits=fixedWindow(limit:5000,window:1h)&limits=gcra(limit:5000,window:1h,burst:100)
Situations | spread | One each 100 ms | outbound.html | Calls that go out | kind=storm&clients=40&obey=100&span=10s&limits=gcra(limit:600,window:1m,burst:1)+wait(maxWait:10s)&limits=gcra(limit:600,window:1m,burst:1)
Situations | login | Logins | recipes/logins.html | The recipe for logins | kind=even&rate=0.05&span=2h&limits=slidingLog(limit:5,window:15m)+penalty(after:3,block:10m,factor:2)&limits=slidingLog(limit:5,window:15m)
Situations | storm | Retry storm | http.html#headers-and-denials | Headers and denials | kind=storm&clients=60&obey=50&retry=250ms&span=30s&limits=gcra(limit:20,window:10s,burst:5)&limits=slidingLog(limit:20,window:10s)
Situations | day | A day with a peak | cli.html | Which limit to set | kind=day&rate=0.05&peak=8&span=1d&keys=5&limits=slidingLog(limit:300,window:1h)&limits=tokenBucket(limit:300,window:1h,capacity:100)
Situations | budget | A monthly budget | stores.html#budgets-and-quotas-by-the-month | Budgets and quotas by the month | kind=poisson&rate=0.02&span=1d&cost=20000&real=13500&takes=2s&limits=calendarWindow(limit:10000000,every:month,anchor:2025-01-01T12%3A00)&limits=fixedWindow(limit:10000000,window:30d)
Algorithms | compare | Log and GCRA | algorithms.html#how-to-choose | How to choose | kind=poisson&rate=4&span=30s&limits=slidingLog(limit:20,window:10s)&limits=gcra(limit:20,window:10s,burst:5)
Algorithms | slidingLog | Sliding log | algorithms.html#slidinglog-the-default | slidingLog | kind=poisson&rate=3&span=40s&limits=slidingLog(limit:20,window:10s)
Algorithms | slidingWindow | Sliding window | algorithms.html#slidingwindow | slidingWindow | kind=poisson&rate=3&span=40s&limits=slidingWindow(limit:20,window:10s,buckets:5)&limits=slidingWindow(limit:20,window:10s,buckets:1,count:weighted)
Algorithms | tokenBucket | Token bucket | algorithms.html#tokenbucket | tokenBucket | kind=poisson&rate=3&span=40s&limits=tokenBucket(limit:20,window:10s)&limits=tokenBucket(limit:20,window:10s,refill:interval)
Algorithms | leakyBucket | Leaky bucket | algorithms.html#leakybucket | leakyBucket | kind=storm&clients=20&obey=100&span=20s&limits=leakyBucket(limit:1,window:1s,capacity:5)+wait(maxWait:20s)
Algorithms | gcra | GCRA | algorithms.html#gcra | gcra | kind=poisson&rate=3&span=40s&limits=gcra(limit:20,window:10s,burst:5)
Features | several | Several policies | algorithms.html#how-to-choose | How to choose | kind=poisson&rate=3&span=60s&limits=gcra(limit:2,window:1s,burst:6)+slidingLog(limit:60,window:30s)
Features | leases | Leases | scaling.html#leases | Leases | kind=poisson&rate=20&span=20s&limits=slidingLog(limit:100,window:10s)+leases(ttl:1s,size:10,processes:4)&limits=slidingLog(limit:100,window:10s)
Features | settle | Giving back | algorithms.html#reserve-and-settle-which-algorithm | Reserve and settle | kind=poisson&rate=2&span=60s&cost=40&real=10&takes=2s&limits=slidingWindow(limit:400,window:20s)&limits=gcra(limit:400,window:20s)
`

/** Scenarios with a name, and where their numbers come from: a page of the site, or an address of the web. */
export const PRESETS = TABLE.trim()
  .split('\n')
  .map((line) => {
    const [group = '', id = '', title = '', source = '', sourceTitle = '', rest = ''] = line.split(' | ')
    return { group, id, title, source, sourceTitle, fragment: `2&${rest}` }
  })

export type Preset = (typeof PRESETS)[number]

/** The scenario of an address that names none, or none that is known. */
export const DEFAULT = PRESETS.find(({ id }) => id === 'compare')!

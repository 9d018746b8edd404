/** A scenario with a name, and where its numbers come from. */
export interface Preset {
  readonly id: string
  readonly title: string
  /** A page of the site, or an address of the web. */
  readonly source: string
  readonly sourceTitle: string
  readonly fragment: string
}

export const PRESETS: readonly Preset[] = [
  {
    id: 'compare',
    title: 'Log and GCRA',
    source: 'algorithms.html#how-to-choose',
    sourceTitle: 'How to choose',
    fragment: '1&kind=poisson&rate=4&span=30s&limits=slidingLog(limit:20,window:10s)&limits=gcra(limit:20,window:10s,burst:5)',
  },
  {
    id: 'boundary',
    title: "A window's edge",
    source: 'algorithms.html#fixedwindow',
    sourceTitle: 'fixedWindow',
    fragment: '1&kind=edge&window=10s&burst=20&span=60s&limits=fixedWindow(limit:20,window:10s)&limits=slidingLog(limit:20,window:10s)',
  },
  {
    id: 'github',
    title: "GitHub's 5,000 an hour",
    source: 'https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api',
    sourceTitle: "GitHub's documentation",
    fragment: '1&kind=poisson&rate=1.6&span=3h&limits=fixedWindow(limit:5000,window:1h)&limits=gcra(limit:5000,window:1h,burst:100)',
  },
  {
    id: 'spread',
    title: 'One each 100 ms',
    source: 'outbound.html',
    sourceTitle: 'Calls that go out',
    fragment: '1&kind=storm&clients=40&obey=100&span=10s&limits=gcra(limit:600,window:1m,burst:1);maxWait:10s&limits=gcra(limit:600,window:1m,burst:1)',
  },
  {
    id: 'login',
    title: 'Logins',
    source: 'recipes/logins.html',
    sourceTitle: 'The recipe for logins',
    fragment: '1&kind=even&rate=0.05&span=2h&limits=slidingLog(limit:5,window:15m);penalty(after:3,block:10m,factor:2)&limits=slidingLog(limit:5,window:15m)',
  },
  {
    id: 'storm',
    title: 'Retry storm',
    source: 'http.html#headers-and-denials',
    sourceTitle: 'Headers',
    fragment: '1&kind=storm&clients=60&obey=50&retry=250ms&span=30s&limits=gcra(limit:20,window:10s,burst:5)&limits=slidingLog(limit:20,window:10s)',
  },
  {
    id: 'day',
    title: 'A day with a peak',
    source: 'cli.html',
    sourceTitle: 'Which limit to set',
    fragment: '1&kind=day&rate=0.05&peak=8&span=1d&keys=5&limits=slidingLog(limit:300,window:1h)&limits=tokenBucket(limit:300,window:1h,capacity:100)',
  },
  {
    id: 'several',
    title: 'Several policies',
    source: 'algorithms.html#how-to-choose',
    sourceTitle: 'How to choose',
    fragment: '1&kind=poisson&rate=3&span=60s&limits=gcra(limit:2,window:1s,burst:6)+slidingLog(limit:60,window:30s)',
  },
  {
    id: 'slidingLog',
    title: 'Sliding log',
    source: 'algorithms.html#slidinglog-the-default',
    sourceTitle: 'slidingLog',
    fragment: '1&kind=poisson&rate=3&span=40s&limits=slidingLog(limit:20,window:10s)',
  },
  {
    id: 'slidingWindow',
    title: 'Sliding window',
    source: 'algorithms.html#slidingwindow',
    sourceTitle: 'slidingWindow',
    fragment: '1&kind=poisson&rate=3&span=40s&limits=slidingWindow(limit:20,window:10s,buckets:5)&limits=slidingWindow(limit:20,window:10s,buckets:1,count:weighted)',
  },
  {
    id: 'tokenBucket',
    title: 'Token bucket',
    source: 'algorithms.html#tokenbucket',
    sourceTitle: 'tokenBucket',
    fragment: '1&kind=poisson&rate=3&span=40s&limits=tokenBucket(limit:20,window:10s)&limits=tokenBucket(limit:20,window:10s,refill:interval)',
  },
  {
    id: 'leakyBucket',
    title: 'Leaky bucket',
    source: 'algorithms.html#leakybucket',
    sourceTitle: 'leakyBucket',
    fragment: '1&kind=storm&clients=20&obey=100&span=20s&limits=leakyBucket(limit:1,window:1s,capacity:5);maxWait:20s',
  },
  {
    id: 'gcra',
    title: 'GCRA',
    source: 'algorithms.html#gcra',
    sourceTitle: 'gcra',
    fragment: '1&kind=poisson&rate=3&span=40s&limits=gcra(limit:20,window:10s,burst:5)',
  },
  {
    id: 'leases',
    title: 'Leases',
    source: 'scaling.html#leases',
    sourceTitle: 'Leases',
    fragment: '1&kind=poisson&rate=20&span=20s&limits=slidingLog(limit:100,window:10s);leases(ttl:1s,size:10,processes:4)&limits=slidingLog(limit:100,window:10s)',
  },
  {
    id: 'settle',
    title: 'Giving back',
    source: 'algorithms.html#reserve-and-settle-which-algorithm',
    sourceTitle: 'Reserve and settle',
    fragment: '1&kind=poisson&rate=2&span=60s&cost=40&real=10&takes=2s&limits=slidingWindow(limit:400,window:20s)&limits=gcra(limit:400,window:20s)',
  },
]

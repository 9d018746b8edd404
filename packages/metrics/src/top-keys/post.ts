import type { DecisionCount } from './decision-counts.js'
import type { KeyCount } from './space-saving.js'
import type { Summary } from './summary.js'

/** What one process has counted of one limiter. */
export interface Post {
  readonly limiter: string
  /** Keys that are held. */
  readonly size: number
  readonly denied: Summary
  /** Of a sample of all calls. */
  readonly sampled: Summary
  readonly decisions: readonly DecisionCount[]
}

/** The posts of one process as a text, some 3 kB for 100 short keys. */
export function textOf(posts: readonly Post[]): string {
  return JSON.stringify({
    format: FORMAT,
    posts: posts.map((post) => ({
      ...post,
      denied: packed(post.denied),
      sampled: packed(post.sampled),
    })),
  })
}

/** The posts in a text, and none where it is of another format. */
export function postsOf(text: string): readonly Post[] {
  try {
    const { format, posts } = JSON.parse(text) as { format: unknown; posts: readonly PackedPost[] }
    if (format !== FORMAT) return []
    return posts.map((post) => ({
      ...post,
      denied: unpacked(post.denied),
      sampled: unpacked(post.sampled),
    }))
  } catch {
    return []
  }
}

interface PackedSummary extends Omit<Summary, 'keys'> {
  readonly keys: readonly (readonly [key: string, count: number, error: number])[]
}

interface PackedPost extends Omit<Post, 'denied' | 'sampled'> {
  readonly denied: PackedSummary
  readonly sampled: PackedSummary
}

function packed({ keys, ...summary }: Summary): PackedSummary {
  return { ...summary, keys: keys.map(({ key, count, error }) => [key, count, error] as const) }
}

function unpacked({ keys, ...summary }: PackedSummary): Summary {
  return { ...summary, keys: keys.map(([key, count, error]): KeyCount => ({ key, count, error })) }
}

/** Raised with every change of what a post holds or means: processes of two versions do not read each other's. */
const FORMAT = 1

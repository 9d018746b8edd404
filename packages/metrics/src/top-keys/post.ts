import type { Policy } from '@sluice/core'
import { type Denial, packed as packedDenials, unpacked as unpackedDenial } from '../denials/denial.js'
import type { DecisionCount } from './decision-counts.js'
import type { KeyCount } from './space-saving.js'
import type { Summary } from './summary.js'

/** The counts of one limiter in one process. */
export interface Post {
  readonly limiter: string
  /** Keys that are held. */
  readonly size: number
  readonly denied: Summary
  /** Of a sample of all calls. */
  readonly sampled: Summary
  readonly decisions: readonly DecisionCount[]
  /** The policies that the limiter was made with, for those who have no file of them. Older processes post none. */
  readonly limits?: readonly PostedLimit[] | undefined
}

/** The numbers of one policy, and the shape by which its algorithm is known. */
export interface PostedLimit {
  readonly shape: string
  readonly limit: number
  readonly capacity: number
  readonly name: string
  /** Of a calendar window. */
  readonly timeZone?: string | undefined
  readonly anchor?: string | undefined
}

/** The numbers of a policy as they are posted. */
export function limitOf({ shape, limit, capacity, name, calendar }: Policy): PostedLimit {
  return { shape, limit, capacity, name, timeZone: calendar?.timeZone, anchor: calendar?.anchor }
}

/**
 * The text that a process posts for others to read: its top keys, with one post for each limiter, and its last denials if there are
 * some. Keys are packed as short lists, so that 100 short keys take 3 kB.
 */
export function textOf(posts: readonly Post[], denials: readonly Denial[] = []): string {
  return JSON.stringify({
    format: FORMAT,
    posts: posts.map((post) => ({
      ...post,
      denied: packed(post.denied),
      sampled: packed(post.sampled),
    })),
    ...(denials.length > 0 && { denials: packedDenials(denials) }),
  })
}

/** The posts and denials of a text that are sound. */
export interface ReadPosts {
  readonly posts: readonly Post[]
  readonly denials: readonly Denial[]
  /** Posts and denials that are not sound; 1 for a text that is none. */
  readonly malformed: number
  /** The format of a text that has another, of which nothing is read. */
  readonly unknown?: number
}

/**
 * Reads a text that another process has posted: the top keys of each of its limiters (posts) and its last denials. If the text is in
 * the format of another version, nothing is read, and `unknown` is that format. Posts and denials that are broken are left out and
 * counted (`malformed`), and so is a text that is nothing of this.
 */
export function postsOf(text: string): ReadPosts {
  const { format, posts, denials = [] } = parsed(text)
  const nothing = { posts: [], denials: [] }
  if (typeof format === 'number' && format !== FORMAT) return { ...nothing, malformed: 0, unknown: format }
  if (format !== FORMAT || !Array.isArray(posts)) return { ...nothing, malformed: 1 }
  const soundPosts = (posts as readonly unknown[]).filter(isPost)
  const denialList: readonly unknown[] = Array.isArray(denials) ? denials : [denials]
  const soundDenials = denialList.filter(isDenial)
  return {
    posts: soundPosts.map((post) => ({
      ...post,
      denied: unpacked(post.denied),
      sampled: unpacked(post.sampled),
    })),
    denials: soundDenials.map(unpackedDenial),
    malformed: posts.length - soundPosts.length + denialList.length - soundDenials.length,
  }
}

/** The fields of a JSON object, whose values have still to be checked; an empty object if the text is not JSON. */
function parsed(text: string): Fields<{ format: unknown; posts: unknown; denials: unknown }> {
  try {
    return fieldsOf(JSON.parse(text))
  } catch {
    return {}
  }
}

/** Whether a value from another process is a sound post: the counts of one limiter, with at most `size` keys in each list. */
function isPost(value: unknown): value is PackedPost {
  const { limiter, size, denied, sampled, decisions, limits = [] } = fieldsOf<PackedPost>(value)
  return (
    typeof limiter === 'string' &&
    isCount(size) &&
    size > 0 &&
    [denied, sampled].every((summary) => isSummary(summary, size)) &&
    Array.isArray(decisions) &&
    decisions.every(isDecisionCount) &&
    Array.isArray(limits) &&
    limits.every(isLimit)
  )
}

/**
 * Whether a value is a sound summary: how many items were counted, how often an unlisted key may have come, and at most
 * `size` keys with their counts.
 */
function isSummary(value: unknown, size: number): boolean {
  const { total, missed, keys } = fieldsOf<PackedSummary>(value)
  return (
    isCount(total) && isCount(missed) && Array.isArray(keys) && keys.length <= size && keys.every(isKeyCount)
  )
}

/** Whether a value is a list of a key, its count and the count's possible error, which is not above the count. */
function isKeyCount(value: unknown): boolean {
  if (!Array.isArray(value)) return false
  const [key, count, error] = value as unknown[]
  return typeof key === 'string' && isCount(count) && isCount(error) && error <= count
}

/** Whether a value is a count of decisions of one policy with one result, as another process has written it. */
function isDecisionCount(value: unknown): boolean {
  const { policy, result, count } = fieldsOf<DecisionCount>(value)
  return typeof policy === 'string' && typeof result === 'string' && isCount(count)
}

/** Whether a value is the numbers of a policy, as another process has written them. */
function isLimit(value: unknown): boolean {
  const { shape, limit, capacity, name } = fieldsOf<PostedLimit>(value)
  return typeof shape === 'string' && typeof name === 'string' && isCount(limit) && isCount(capacity)
}

/** Whether a value, which another process has written, is a sound denial. */
function isDenial(value: unknown): value is readonly unknown[] {
  if (!Array.isArray(value)) return false
  const [id, limiter, policy, key, reason, retryAfterMs, at] = value as unknown[]
  const areTexts = [id, limiter, policy, key, reason].every((text) => typeof text === 'string')
  return areTexts && (retryAfterMs === null || isCount(retryAfterMs)) && isCount(at)
}

/** Whether a value is a whole number from 0 on. */
function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** A parsed value of any type as an object whose fields have still to be checked; null and undefined become an empty one. */
function fieldsOf<T>(value: unknown): Fields<T> {
  return value ?? {}
}

type Fields<T> = { readonly [Name in keyof T]?: unknown }

interface PackedSummary extends Omit<Summary, 'keys'> {
  readonly keys: readonly (readonly [key: string, count: number, error: number])[]
}

interface PackedPost extends Omit<Post, 'denied' | 'sampled'> {
  readonly denied: PackedSummary
  readonly sampled: PackedSummary
}

/** The summary as it is written to JSON: each key is a list `[key, count, error]`, which is shorter than an object with names. */
function packed({ keys, ...summary }: Summary): PackedSummary {
  return { ...summary, keys: keys.map(({ key, count, error }) => [key, count, error] as const) }
}

/** The summary that `packed` wrote as lists, with an object for each key again. */
function unpacked({ keys, ...summary }: PackedSummary): Summary {
  return { ...summary, keys: keys.map(([key, count, error]): KeyCount => ({ key, count, error })) }
}

/** Raised with every change of what a post holds or means: processes of two versions do not read each other's. */
const FORMAT = 1

import { returnedText } from '../returned-text.js'
import { OTHER } from './bounded-labels.js'

/** Makes a short text of a key, for example the tier of a customer. */
export type TagOf = (key: string) => string

/**
 * The tag that the user's function makes of a key. It is 'other' if the tag is too long, and if the function fails;
 * `warn` gets that failure, as a decision must not fail with it.
 */
export function tagOf(key: string, make: TagOf, warn: (message: string) => void): string {
  try {
    const tag = returnedText('tag', make(key))
    return tag.length <= LONGEST_TAG ? tag : OTHER
  } catch (error) {
    warn(`a key without a tag is counted as '${OTHER}': ${String(error)}`)
    return OTHER
  }
}

export const MOST_TAGS = 100
const LONGEST_TAG = 100

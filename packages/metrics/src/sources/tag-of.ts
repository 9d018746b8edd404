import { returnedText } from '../returned-text.js'
import { OTHER } from './bounded-labels.js'

/** Makes a short text of a key, for example the tier of a customer. */
export type TagOf = (key: string) => string

/**
 * The tag, a short text, that the user's function `make` makes of a key. A tag of more than 100 characters counts as
 * 'other', and so does a key for which the function fails; a decision must not fail with it, so `warn` gets the message.
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

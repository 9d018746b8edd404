import * as core from '@sluice/core'
import type { algorithms } from '@sluice/core/store'

/** A policy as it travels to another process. */
export type PolicySpec = readonly [
  factory: keyof typeof algorithms,
  options: { readonly limit: number; readonly window: string; readonly [option: string]: unknown },
]

/**
 * The policy of a specification that can be sent to another process: the name of a factory and its options. The factory is looked
 * up in core's main entry, since a process of an older build has no list of them.
 */
export function policyOf([factory, options]: PolicySpec): core.Policy {
  return (core[factory] as (options: object) => core.Policy)(options)
}

import * as core from '@sluice/core'
import type { algorithms } from '@sluice/core/store'

/** A policy as it travels to another process. */
export type PolicySpec = readonly [
  factory: keyof typeof algorithms,
  options: {
    readonly limit: number
    readonly window?: string | undefined
    readonly [option: string]: unknown
  },
]

/** Core's main entry, as a process of an older build has no list of the factories. */
const factories: Readonly<Partial<Record<string, unknown>>> = core

/** The policy of a specification that can be sent to another process: the name of a factory and its options. */
export function policyOf([factory, options]: PolicySpec): core.Policy {
  return (factories[factory] as (options: object) => core.Policy)(options)
}

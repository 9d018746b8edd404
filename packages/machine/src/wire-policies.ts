import { type Policy, PolicyError } from '@sluice/core'
import { type Declaration, printableName, readOption, required } from '@sluice/core/internal'
import { algorithms, type Penalty, type PolicyFactory } from '@sluice/core/store'
import { MalformedFrame } from './frames.js'
import { wholeNumber } from './protocol.js'

/** A limiter's name, its policies, its penalty and whether it reserves, as processes send them to the server of the machine. */
export class WirePolicies {
  /** Equal for lists that decide alike. */
  readonly text: string

  /**
   * Makes the text of a list of policies: for each its shape, limit and capacity. A shape is a text of the algorithm and the
   * window, from which the server makes a policy of its own, so that nothing that runs is sent. Each is tried here, and must
   * result in the same shape.
   * @throws {PolicyError} INVALID_POLICIES for an algorithm that this package does not have.
   */
  constructor(
    readonly name: string,
    readonly policies: readonly Policy[],
    readonly penalty?: Penalty,
    /** Most reservations of a key, of a limiter that reserves. */
    readonly max?: number,
  ) {
    const sent = policies.map(({ shape, limit, capacity, calendar }): SentPolicy => {
      if (!calendar) return [shape, limit, capacity]
      const { every, timeZone, anchor } = calendar
      return [shape, limit, capacity, { every, timeZone, anchor }]
    })
    for (const policy of sent) {
      const [shape] = policy
      if (makerOf(shape.split('/', 1)[0]!) && policyOf(...policy).shape === shape) continue
      const message = `machineStore has no algorithm for the shape '${shape}'`
      throw new PolicyError('INVALID_POLICIES', message)
    }
    const sentPenalty = penalty && numbersOf(penalty)
    const penaltyIfAny = sentPenalty ? [sentPenalty] : []
    const penaltyAndMax = max === undefined ? penaltyIfAny : [sentPenalty ?? 0, max]
    this.text = JSON.stringify([name, sent, ...penaltyAndMax])
  }
}

/** The error for a text that is no list of policies, or one that this process cannot make: it may lack Temporal, or a time zone. */
export class UnreadablePolicies extends Error {}

/**
 * Reads a limiter's name, policies and penalty from the text in which another process sent them. The policies are made anew by
 * the factories of this process, such as `gcra`, so that no code is taken from others.
 * @throws {UnreadablePolicies}
 */
export function readWirePolicies(text: string): WirePolicies {
  try {
    const [name, sent, penalty, max] = JSON.parse(text) as [string, SentPolicy[], (number[] | 0)?, number?]
    if (sent.length < 1 || sent.length > MOST_POLICIES) throw new Error(`${sent.length} policies`)
    const policies = sent.map((policy) => policyOf(...policy))
    const checked = readOption(required(printableName), name, 'name', { what: 'a limiter' })
    return new WirePolicies(
      checked,
      policies,
      penalty ? penaltyOf(penalty) : undefined,
      max && wholeNumber(max),
    )
  } catch (cause) {
    throw new UnreadablePolicies(`the process that serves cannot read the policies: ${String(cause)}`)
  }
}

/** The shape, limit and capacity of a policy, and of one with a calendar the options that make that. */
type SentPolicy = readonly [shape: string, limit: number, capacity: number, calendar?: object]

const MOST_POLICIES = 10

/** The fields of a penalty as they are sent, in the order in which `penaltyOf` reads them. */
function numbersOf({ after, block, factor, maxBlock, forgetAfter, then }: Penalty): readonly number[] {
  return [after, block, factor, maxBlock, forgetAfter, then === 'fresh' ? 1 : 0]
}

/**
 * Reads a penalty, the block of a key that was refused often, from the numbers that `numbersOf` makes of it. Each block is longer
 * than the one before by `factor`, which may be a fraction; `after` and the durations, in microseconds, are whole. `isFresh` is 1
 * if the refusal that starts a block also clears what the key has consumed.
 * @throws {MalformedFrame} for numbers that make no penalty.
 */
function penaltyOf(numbers: readonly number[]): Penalty {
  const [after, block, factor = NaN, maxBlock, forgetAfter, isFresh] = numbers
  if (!(factor >= 1 && factor < Infinity)) throw new MalformedFrame(`a penalty that grows by ${factor}`)
  return {
    after: wholeNumber(after),
    block: wholeNumber(block),
    factor,
    maxBlock: wholeNumber(maxBlock),
    forgetAfter: wholeNumber(forgetAfter),
    ...(isFresh === 1 && { then: 'fresh' }),
  }
}

/** Options that are sent as numbers, or change no decision. */
const NUMBERS: ReadonlySet<string> = new Set(['limit', 'window', 'capacity', 'burst', 'name'])

/**
 * All combinations of a factory's options, but those of `NUMBERS`, in a fixed order. An option that accepts words has each of them in
 * turn; any other is left out, or is `partCount`, the number of buckets or slots.
 */
function combinationsOf(options: Declaration, partCount: number): readonly object[] {
  let combinations: readonly object[] = [{}]
  for (const [name, { domain }] of Object.entries(options)) {
    if (NUMBERS.has(name)) continue
    const values = domain && 'values' in domain ? domain.values : [undefined, partCount]
    combinations = combinations.flatMap((others) => values.map((value) => ({ ...others, [name]: value })))
  }
  return combinations
}

/** The number of parts makes no other algorithm. */
const ANY_PART_COUNT = 4

/** A factory, and the index of a combination of its options. */
type Maker = readonly [factory: PolicyFactory<object>, combination: number]

/** Of each known algorithm what makes it, by its name. */
const MAKERS = new Map<string, Maker>()

/**
 * Returns what makes policies of the algorithm `name`, as a factory makes another algorithm for some of its options: the factory and
 * the combination, of several the last, which sets the number of parts. If the name is not known, all factories are tried with all
 * combinations, and the algorithms that they make are noted: `@sluice/calendar` may be imported later than this package.
 */
function makerOf(name: string): Maker | undefined {
  const factories = MAKERS.has(name) ? [] : (Object.values(algorithms) as readonly PolicyFactory<object>[])
  for (const factory of factories) {
    for (const [i, combination] of combinationsOf(factory.options, ANY_PART_COUNT).entries()) {
      try {
        const given = Object.create({ limit: 1, window: '1d', ...combination }) as object
        MAKERS.set(factory(given).algorithm.name, [factory, i])
      } catch {
        // Options that exclude each other.
      }
    }
  }
  return MAKERS.get(name)
}

/**
 * Makes the policy of a shape, such as `sliding-window-weighted/60000/10`: algorithm, window in milliseconds, and number of
 * buckets or slots. `limit` and `capacity` are the numbers that are no part of the shape; the capacity is also given as `burst`,
 * its name in some algorithms. `calendar` has the options of an algorithm with a calendar, whose shape has its period in place of
 * a window.
 */
function policyOf(...[shape, limit, capacity, calendar]: SentPolicy): Policy {
  const [name = '', windowMs, partCount = '1'] = shape.split('/')
  const [factory, combination] = makerOf(name) ?? []
  if (!factory) throw new Error(`no algorithm is named '${name}'`)
  const numbers = { limit, window: `${windowMs}ms`, capacity, burst: capacity }
  // As a prototype: a factory reads the options that it has, and refuses no other, as inherited names are not checked.
  const given = Object.create({
    ...numbers,
    ...combinationsOf(factory.options, Number(partCount))[combination!],
    ...calendar,
  }) as object
  const policy = factory(given)
  // Leases make policies of a smaller capacity, also where the algorithm has no option for it.
  return policy.capacity === capacity ? policy : policy.with({ capacity })
}

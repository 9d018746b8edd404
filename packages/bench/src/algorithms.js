// Every algorithm, as it is measured: its label, and its policy with numbers of a measurement.
import { mainShapes, sampleOf } from '@sluice/testing/internal'

/**
 * @typedef {import('@sluice/core').Policy} Policy
 * @typedef {object} Measured
 * @property {string} label In words, with the variant and the buckets: 'sliding window, weighted, 10 buckets'.
 * @property {string} factory
 * @property {object} variant Its options beside the numbers.
 * @property {boolean} isPlain Without such options.
 * @property {boolean} isLog Has an entry for each unit, and so a largest limit.
 * @property {(numbers: { limit: number, window: number }) => Policy} policy
 */

/** Algorithms, and their variants of one option. @type {readonly Measured[]} */
export const measured = mainShapes()
  .filter(({ variant }) => Object.keys(variant).length <= 1)
  .map((shape) => {
    const { buckets, algorithm } = sampleOf(shape)
    const words = Object.values(shape.variant)
    const [title = ''] = shape.title.replaceAll('-', ' ').split(',')
    return {
      label: [title, ...words, ...(buckets > 1 ? [`${buckets} buckets`] : [])].join(', '),
      factory: shape.algorithm,
      variant: shape.variant,
      isPlain: Object.keys(shape.variant).length === 0,
      isLog: algorithm.ring,
      policy: (numbers) => shape.factory({ ...numbers, ...shape.variant }),
    }
  })

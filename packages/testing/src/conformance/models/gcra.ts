import type { Model } from '../rule.js'
import { debt, type Debt } from './debt.js'

/** GCRA: max(TAT, t) - t is the debt over the rate, so TAT + cT - t <= burst x T says debt <= (burst - c) x W. */
export const model: Model<Debt> = { ...debt, capacity: 'burst', variants: [{ slots: 16 }, { slots: 4 }] }

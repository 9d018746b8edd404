import type { Model } from '../rule.js'
import { debt, type Debt } from './debt.js'

/** Leaky bucket as a meter: the level is the debt, and it drains at L/W. */
export const model: Model<Debt> = { ...debt, capacity: 'capacity' }

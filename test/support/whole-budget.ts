import { KeyedBudget, type GrowingPart, type PartOfAccount } from '../../src/byte-budget.js';

/** A budget with one member, which may take all of it. */
export const wholeBudget = (bytesMax: number): PartOfAccount & GrowingPart =>
  new KeyedBudget(bytesMax, 0, 1).of('only');

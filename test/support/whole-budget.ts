import type { SocketBudgets } from '../../src/front/ws/outbox.js';
import type { Bounds } from '../../src/limits.js';
import { KeyedBudget, type GrowingPart, type PartOfAccount } from '../../src/byte-budget.js';

/** A budget with one member, which may take all of it. */
export const wholeBudget = (bytesMax: number): PartOfAccount & GrowingPart =>
  new KeyedBudget(bytesMax, 0, 1).of('only');

/** The budgets of sockets, for one account. */
export const wholeSocketBudgets = (bounds: Bounds) =>
  ({
    buffered: wholeBudget(bounds.socketBufferedBytesInFlightMax),
    answers: wholeBudget(bounds.socketAnswerBytesInFlightMax),
    waiting: wholeBudget(bounds.waitingMessageBytesMax),
    text: wholeBudget(bounds.socketCharactersInFlightMax),
    flushIds: wholeBudget(bounds.flushIdUnitsInFlightMax),
  }) satisfies SocketBudgets;

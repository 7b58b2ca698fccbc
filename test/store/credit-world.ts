/**
 * Several services that share one account, in random schedules: requests, cuts, late messages, kills, deaths. After each
 * step it checks that no credit can be spent twice, and that no request is refused while the credit that it needs is idle.
 */
import type { Test } from 'tap';
import { limits } from '../../src/limits.js';
import { seededRandom } from '../../scripts/rig/random.js';
import { seedOfRun } from '../fuzz/check.js';
import { Reservations, type Claim, type Grant } from '../../src/store/reservations.js';

export const ACCOUNT = 1;
/** What a host may have spare: requests that are refused meanwhile may lack it. */
const AHEAD = 20;
const BATCH_MAX = 3;

export interface Entry {
  readonly entry: number;
  readonly amount: number;
}

export interface Held {
  readonly writer: number;
  readonly reserved: number;
}

/** The database, as `host-schema.ts` is. */
export interface Bank {
  grant(amount: number): Promise<void>;
  /** @returns `null`: the writer has ended or was declared dead, or a later turn of it came before */
  commit(
    writer: number,
    turn: number | null,
    entries: readonly Entry[],
    claims: readonly Claim[],
  ): Promise<readonly Grant[] | null>;
  declareDead(writer: number): Promise<void>;
  end(writer: number): Promise<void>;
  balance(): Promise<number>;
  reservations(): Promise<readonly Held[]>;
  entries(writer: number): Promise<readonly Entry[]>;
}

interface Request {
  readonly amount: number;
  /** The least idle credit since it came. */
  leastIdle: number;
  outcome: 'waiting' | 'admitted' | 'creditExhausted' | 'unavailable';
  cancel: () => void;
}

interface Commit {
  /** The database does it, and its answer goes back. */
  readonly deliver: () => Promise<() => void>;
  readonly fail: () => void;
}

class Host {
  readonly credit = new Reservations({ ...limits, storeStaleMsMax: 600_000 });
  readonly leases: number[] = [];
  /** What the database has not acknowledged: the journal has it too. */
  queue: Entry[] = [];
  lastEntry = 0;
  acknowledged = 0;
  turn = 0;
  isCut = false;
  isDead = false;
  isBarred = false;
  readonly requests: Request[] = [];
  /** A host commits again when it has the answer, or has given up. */
  sent: Commit | null = null;
  answer: { readonly apply: () => void; readonly fail: () => void } | null = null;

  constructor(readonly writer: number) {}
}

export interface WorldOptions {
  readonly bank: Bank;
  readonly random: () => number;
  readonly hosts: number;
}

class World {
  readonly #bank: Bank;
  readonly #random: () => number;
  #hosts: Host[];
  /** Killed, with what they left in their journals. */
  readonly #left: Pick<Host, 'writer' | 'queue'>[] = [];
  /** Commits whose sender has given up: they may arrive at any time. */
  #late: Commit[] = [];
  #writers = 0;
  readonly #entries = new Map<number, Entry[]>();
  readonly #refusedWriters = new Set<number>();
  readonly #exhausted: Request[] = [];
  readonly counts = {
    admitted: 0,
    creditExhausted: 0,
    unavailable: 0,
    cuts: 0,
    kills: 0,
    deaths: 0,
    late: 0,
  };

  constructor({ bank, random, hosts }: WorldOptions) {
    this.#bank = bank;
    this.#random = random;
    this.#hosts = Array.from({ length: hosts }, () => new Host(++this.#writers));
  }

  async start(credits: number): Promise<void> {
    for (const { writer } of this.#hosts) await this.#bank.commit(writer, null, [], []);
    await this.#bank.grant(credits);
  }

  async step(): Promise<void> {
    const host = this.#pick(this.#hosts);
    const roll = this.#random() * 100;
    if (roll < 20) this.#request(host, 1 + Math.floor(this.#random() ** 2 * 60));
    else if (roll < 34) this.#speak(host);
    else if (roll < 52) this.#commit(host);
    else if (roll < 70) await this.#deliver(host);
    else if (roll < 87) this.#apply(host);
    else if (roll < 91) this.#loseConnection(host);
    else if (roll < 94) await this.#deliverLate();
    else if (roll < 95) this.#cut(host);
    else if (roll < 97) host.isCut = false;
    else if (roll < 97.8) await this.#kill(host);
    else if (roll < 98.2) await this.#declareDead();
    else if (roll < 99.2) this.#pick(host.requests)?.cancel();
    else await this.#bank.grant(Math.floor(this.#random() * 60));
    await this.#check();
  }

  /** Ends all faults, lets every message arrive, and spends what is left on one host. */
  async settle(): Promise<void> {
    for (const host of this.#hosts) {
      host.isCut = false;
      for (const { cancel } of [...host.requests]) cancel();
      for (const amount of host.leases.splice(0)) host.credit.release(ACCOUNT, amount);
    }
    for (const left of this.#left.splice(0)) await this.#sendLeft(left);
    for (const { credit, isDead } of this.#hosts) if (isDead) credit.close();
    this.#hosts = this.#hosts.filter(({ isDead }) => !isDead);
    if (this.#hosts.length === 0) await this.#addHost();
    await this.#calm();
    const held = await this.#bank.reservations();
    if (held.some(({ reserved }) => reserved > 0))
      throw new Error(`hosts without requests hold credit: ${JSON.stringify(held)}`);
    const idle = await this.#bank.balance();
    const host = this.#pick(this.#hosts);
    const request = idle > 0 ? this.#request(host, idle, 0) : null;
    await this.#calm();
    if (request !== null && request.outcome !== 'admitted')
      throw new Error(`${idle} credits are idle, and a request for them is ${request.outcome}`);
    const more = this.#request(host, 1, 0);
    await this.#calm();
    if (more.outcome !== 'creditExhausted')
      throw new Error(`no credit is left, and a request is ${more.outcome}`);
    for (const [writer, entries] of this.#entries) {
      const found = (await this.#bank.entries(writer)).map(({ entry }) => entry);
      if (new Set(found).size !== found.length) throw new Error(`writer ${writer} has entries twice`);
      if (found.length !== entries.length && !this.#refusedWriters.has(writer))
        throw new Error(`writer ${writer} has ${found.length} of its ${entries.length} entries`);
    }
    for (const { credit } of this.#hosts) credit.close();
  }

  /** All that waits is done. */
  async #calm(): Promise<void> {
    for (let round = 0; round < 4; round += 1) {
      for (const host of this.#hosts)
        do {
          this.#commit(host);
          await this.#deliver(host);
          await this.#check();
          this.#apply(host);
        } while (host.queue.length > 0);
      while (this.#late.length > 0) await this.#deliverLate();
      await this.#check();
    }
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random() * from.length)]!;
  }

  async #addHost(): Promise<void> {
    const host = new Host(++this.#writers);
    this.#hosts.push(host);
    await this.#bank.commit(host.writer, null, [], []);
  }

  #request(host: Host, amount: number, ahead = this.#random() < 0.5 ? AHEAD : 0): Request {
    const request: Request = { amount, leastIdle: Infinity, outcome: 'waiting', cancel: () => undefined };
    const { credit } = host;
    const decide = (): void => {
      host.requests.splice(host.requests.indexOf(request), 1);
      const isAdmitted = credit.spare(ACCOUNT) >= amount;
      request.outcome = isAdmitted ? 'admitted' : credit.refusal(ACCOUNT);
      if (isAdmitted) {
        credit.reserve(ACCOUNT, amount);
        host.leases.push(amount);
      }
      if (request.outcome === 'creditExhausted') this.#exhausted.push(request);
      this.counts[request.outcome as 'admitted'] += 1;
    };
    host.requests.push(request);
    const waiting = credit.wait(ACCOUNT, amount, ahead, decide);
    if (waiting === null) decide();
    else
      request.cancel = () => {
        if (waiting.cancel()) host.requests.splice(host.requests.indexOf(request), 1);
      };
    return request;
  }

  /** Part of a lease is charged, and perhaps the rest of it released. */
  #speak(host: Host): void {
    const lease = host.leases.shift();
    if (lease === undefined) return;
    const charged = Math.floor(this.#random() * (lease + 1));
    const isOver = this.#random() < 0.6;
    if (charged > 0) {
      const entry = { entry: ++host.lastEntry, amount: charged };
      this.#entries.set(host.writer, [...(this.#entries.get(host.writer) ?? []), entry]);
      host.queue.push(entry);
      host.credit.append(ACCOUNT, entry.entry, charged);
    }
    if (!isOver && lease > charged) host.leases.push(lease - charged);
    host.credit.release(ACCOUNT, isOver ? lease : charged);
  }

  #commit(host: Host): void {
    if (host.isBarred || host.sent !== null || host.answer !== null) return;
    const batch = host.queue.slice(0, BATCH_MAX);
    const last = host.acknowledged + batch.length;
    const claims = host.credit.claims(last);
    const turn = ++host.turn;
    host.sent = {
      deliver: async () => {
        const grants = await this.#bank.commit(host.writer, turn, batch, claims);
        return () => {
          if (grants === null) {
            host.isBarred = true;
            return;
          }
          host.acknowledged = last;
          host.queue = host.queue.filter(({ entry }) => entry > last);
          host.credit.committed(last, batch.length > 0 ? [ACCOUNT] : [], claims, grants);
        };
      },
      fail: () => host.credit.failed(claims),
    };
  }

  /** A message arrives, or is on its way for as long as the cut lasts. */
  async #deliver(host: Host): Promise<void> {
    const commit = host.sent;
    if (host.isCut || commit === null) return;
    host.sent = null;
    host.answer = { apply: await commit.deliver(), fail: commit.fail };
  }

  #apply(host: Host): void {
    const { answer } = host;
    host.answer = null;
    answer?.apply();
  }

  /** Both sides of what is on its way: the database may do it later, and no answer comes. */
  #loseConnection(host: Host): void {
    const { sent, answer } = host;
    host.sent = host.answer = null;
    if (sent !== null) this.#late.push(sent);
    if (sent !== null || answer !== null) this.counts.late += 1;
    (sent ?? answer)?.fail();
  }

  async #deliverLate(): Promise<void> {
    const [commit] = this.#late.splice(Math.floor(this.#random() * this.#late.length), 1);
    await commit?.deliver();
  }

  #cut(host: Host): void {
    this.counts.cuts += 1;
    host.isCut = true;
  }

  async #kill(host: Host): Promise<void> {
    this.counts.kills += 1;
    if (host.sent !== null) this.#late.push(host.sent);
    host.requests.length = 0;
    host.credit.close();
    this.#hosts.splice(this.#hosts.indexOf(host), 1);
    if (!host.isDead && this.#random() < 0.7) await this.#sendLeft(host);
    else if (!host.isDead) this.#left.push(host);
    await this.#addHost();
  }

  async #sendLeft({ writer, queue }: Pick<Host, 'writer' | 'queue'>): Promise<void> {
    const taken = (await this.#bank.commit(writer, null, queue, [])) !== null;
    if (taken) await this.#bank.end(writer);
    else this.#refusedWriters.add(writer);
  }

  async #declareDead(): Promise<void> {
    const left = this.#left.shift();
    const host = this.#hosts.find(({ isCut, isDead }) => isCut && !isDead);
    const writer = left?.writer ?? host?.writer;
    if (writer === undefined) return;
    await this.#bank.declareDead(writer);
    this.#refusedWriters.add(writer);
    if (left === undefined && host !== undefined) host.isDead = true;
    this.counts.deaths += 1;
  }

  /** What leases use, and entries that the ledger does not have. */
  async #usedBy({ writer, leases, queue }: Pick<Host, 'writer' | 'leases' | 'queue'>): Promise<number> {
    const settled = new Set((await this.#bank.entries(writer)).map(({ entry }) => entry));
    const open = queue.filter(({ entry }) => !settled.has(entry)).map(({ amount }) => amount);
    return [...leases, ...open].reduce((sum, amount) => sum + amount, 0);
  }

  async #check(): Promise<void> {
    const balance = await this.#bank.balance();
    const held = await this.#bank.reservations();
    const sum = held.reduce((total, { reserved }) => total + reserved, 0);
    if (sum > balance) throw new Error(`${sum} are reserved, and the balance is ${balance}`);
    if (balance < 0) throw new Error(`the balance is ${balance}`);
    for (const host of this.#hosts) {
      if (host.isDead) continue;
      const used = await this.#usedBy(host);
      const reserved = held.find(({ writer }) => writer === host.writer)?.reserved ?? 0;
      if (used > reserved)
        throw new Error(`writer ${host.writer} uses ${used}, and the database knows ${reserved}`);
    }
    for (const { requests } of this.#hosts)
      for (const request of requests) request.leastIdle = Math.min(request.leastIdle, balance - sum);
    for (const { amount, leastIdle } of this.#exhausted.splice(0))
      if (leastIdle >= amount)
        throw new Error(`a request for ${amount} was refused, and ${leastIdle} were idle all the time`);
  }
}

/**
 * Runs random schedules, each on a bank of its own, until one fails.
 *
 * @returns how often each thing happened in them
 */
export const runSchedules = async (
  t: Test,
  runs: number,
  steps: number,
  open: () => Bank | Promise<Bank>,
): Promise<ReadonlyMap<string, number>> => {
  const sums = new Map<string, number>();
  for (let run = 0; run < runs; run += 1) {
    const seed = seedOfRun() + run;
    const random = seededRandom(seed);
    const world = new World({ bank: await open(), random, hosts: 2 + Math.floor(random() * 4) });
    await world.start(Math.floor(random() * 600));
    try {
      for (let step = 0; step < steps; step += 1) await world.step();
      await world.settle();
    } catch (error) {
      t.fail(`SYRINX_FUZZ_SEED=${seed}: ${String(error)}`);
      break;
    }
    for (const [what, count] of Object.entries(world.counts)) sums.set(what, (sums.get(what) ?? 0) + count);
  }
  t.comment(`seed ${seedOfRun()}: ${[...sums].map(([what, count]) => `${count} ${what}`).join(', ')}`);
  return sums;
};

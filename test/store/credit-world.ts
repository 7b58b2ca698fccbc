/**
 * Several services that share one account, in random schedules: requests, cuts, late messages, kills, deaths, expiries.
 * After each step it checks that no credit can be spent twice, and that no request is refused while the credit that it
 * needs is idle elsewhere.
 */
import { limits } from '../../src/limits.js';
import { HostCredit } from '../../src/store/postgres/host-credit.js';
import type { Exchange, Exchanged } from '../../src/store/postgres/host-schema.js';
import type { Allotment } from '../../src/store/allotments.js';

export const ACCOUNT = 1;

export interface Entry {
  readonly entry: number;
  readonly amount: number;
}

export interface Held {
  readonly writer: number;
  readonly reserved: number;
  /** That has not expired. */
  readonly free: number;
}

/** The database, as `host-schema.ts` is. */
export interface Bank {
  grant(amount: number): Promise<void>;
  /** @returns `null`: the writer has ended, or was declared dead */
  append(writer: number, entries: readonly Entry[]): Promise<readonly Allotment[] | null>;
  /** @returns `null`: the same */
  exchange(
    writer: number,
    acknowledged: number,
    asked: readonly Exchange[],
  ): Promise<readonly (Exchanged | null)[] | null>;
  declareDead(writer: number): Promise<void>;
  end(writer: number): Promise<void>;
  /** Its clock moves. */
  advance(ms: number): Promise<void>;
  balance(): Promise<number>;
  allotments(): Promise<readonly Held[]>;
  entries(writer: number): Promise<readonly Entry[]>;
}

interface Request {
  readonly amount: number;
  /** The least idle credit since it came. */
  leastIdle: number;
  outcome: 'waiting' | 'admitted' | 'creditExhausted' | 'unavailable';
  cancel: () => void;
}

interface Message {
  /** The database does it, and its answer goes back. */
  readonly deliver: () => Promise<() => void>;
  readonly fail: () => void;
}

class Host {
  readonly credit: HostCredit;
  readonly leases: number[] = [];
  /** What the database has not acknowledged: the journal has it too. */
  queue: Entry[] = [];
  lastEntry = 0;
  acknowledged = 0;
  isCommitting = false;
  isCut = false;
  isDead = false;
  isBarred = false;
  readonly requests: Request[] = [];
  readonly sent: Message[] = [];
  readonly answers: { readonly apply: () => void; readonly fail: () => void }[] = [];

  constructor(
    readonly writer: number,
    readonly clock: () => number,
  ) {
    this.credit = new HostCredit({ ...limits, creditAheadMin: 20 }, clock, () => undefined);
  }

  get used(): number {
    return [...this.leases, ...this.queue.map(({ amount }) => amount)].reduce(
      (sum, amount) => sum + amount,
      0,
    );
  }
}

export interface WorldOptions {
  readonly bank: Bank;
  readonly random: () => number;
  readonly hosts: number;
}

export class World {
  readonly #bank: Bank;
  readonly #random: () => number;
  #hosts: Host[] = [];
  /** Killed, with what they left in their journals. */
  readonly #left: {
    readonly writer: number;
    readonly queue: readonly Entry[];
    readonly used: number;
    isDead: boolean;
  }[] = [];
  /** Messages whose sender has given up: they may arrive at any time. */
  #late: Message[] = [];
  #notifications: (() => void)[] = [];
  #nowMs = 0;
  #writers = 0;
  #granted = 0;
  readonly #entries = new Map<number, Entry[]>();
  /** Of writers that live, or whose entries all arrived. */
  readonly #refusedWriters = new Set<number>();
  readonly counts = {
    admitted: 0,
    creditExhausted: 0,
    unavailable: 0,
    cuts: 0,
    kills: 0,
    deaths: 0,
    late: 0,
    settled: 0,
  };

  constructor({ bank, random, hosts }: WorldOptions) {
    this.#bank = bank;
    this.#random = random;
    this.#hosts = Array.from({ length: hosts }, () => this.#newHost());
  }

  async start(credits: number): Promise<void> {
    for (const { writer } of this.#hosts) await this.#bank.append(writer, []);
    await this.#grant(credits);
  }

  async step(): Promise<void> {
    const host = this.#pick(this.#hosts);
    const roll = this.#random() * 100;
    if (roll < 18) this.#request(host, 1 + Math.floor(this.#random() ** 2 * 60));
    else if (roll < 30) this.#speak(host);
    else if (roll < 38) this.#commit(host);
    else if (roll < 50) this.#exchange(host);
    else if (roll < 68) await this.#deliver(host);
    else if (roll < 82) host.answers.shift()?.apply();
    else if (roll < 88)
      this.#notifications.splice(Math.floor(this.#random() * this.#notifications.length), 1)[0]?.();
    else if (roll < 92) await this.#advance(Math.floor(this.#random() * 40));
    else if (roll < 93) await this.#advance(Math.floor(this.#random() * 40_000));
    else if (roll < 95) this.#loseConnection(host);
    else if (roll < 96.5) await this.#deliverLate();
    else if (roll < 97) this.#cut(host);
    else if (roll < 97.8) host.isCut = false;
    else if (roll < 98.4) await this.#kill(host);
    else if (roll < 98.7) await this.#declareDead();
    else if (roll < 99.3) this.#pick(host.requests)?.cancel();
    else await this.#grant(Math.floor(this.#random() * 60));
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
    this.#hosts = this.#hosts.filter(({ isDead }) => !isDead);
    if (this.#hosts.length === 0) {
      this.#hosts.push(this.#newHost());
      await this.#bank.append(this.#hosts[0]!.writer, []);
    }
    await this.#calm();
    const idle = await this.#idle();
    if (idle > 0) {
      const host = this.#pick(this.#hosts);
      const request = this.#request(host, idle);
      await this.#calm();
      if (request.outcome !== 'admitted')
        throw new Error(`${idle} credits are idle, and a request for them is ${request.outcome}`);
      const more = this.#request(host, 1);
      await this.#calm();
      if (more.outcome !== 'creditExhausted')
        throw new Error(`no credit is left, and a request is ${more.outcome}`);
      for (const amount of host.leases.splice(0)) host.credit.release(ACCOUNT, amount);
    }
    for (const [writer, entries] of this.#entries) {
      const found = await this.#bank.entries(writer);
      const numbers = found.map(({ entry }) => entry);
      if (new Set(numbers).size !== numbers.length) throw new Error(`writer ${writer} has entries twice`);
      if (found.length !== entries.length && !this.#refusedWriters.has(writer))
        throw new Error(`writer ${writer} has ${found.length} of its ${entries.length} entries`);
    }
    // Idle hosts give all back within a minute.
    for (let second = 0; second < 60; second += 1) {
      await this.#advance(1_000);
      await this.#calm(0);
    }
    const held = await this.#bank.allotments();
    if (held.some(({ reserved, free }) => reserved + free > 0))
      throw new Error(`idle hosts hold credit after a minute: ${JSON.stringify(held)}`);
  }

  async #calm(ms = 190): Promise<void> {
    for (let round = 0; round < 12; round += 1) {
      for (const host of this.#hosts) {
        if (ms > 0) this.#exchange(host);
        do {
          this.#commit(host);
          while (host.sent.length > 0) await this.#deliver(host);
          for (const { apply } of host.answers.splice(0)) apply();
        } while (host.queue.length > 0);
        this.#exchange(host);
        while (host.sent.length > 0) await this.#deliver(host);
        for (const { apply } of host.answers.splice(0)) apply();
      }
      while (this.#late.length > 0) await this.#deliverLate();
      for (const notify of this.#notifications.splice(0)) notify();
      if (ms > 0 && round < 9) await this.#advance(ms / 10);
      await this.#check();
    }
    if (ms > 0) await this.#advance(ms);
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random() * from.length)]!;
  }

  #newHost(): Host {
    return new Host(++this.#writers, () => this.#nowMs);
  }

  async #grant(amount: number): Promise<void> {
    this.#granted += amount;
    await this.#bank.grant(amount);
  }

  #request(host: Host, amount: number): Request {
    const request: Request = { amount, leastIdle: Infinity, outcome: 'waiting', cancel: () => undefined };
    const decide = (): void => {
      host.requests.splice(host.requests.indexOf(request), 1);
      const isAdmitted = host.credit.headroom(ACCOUNT) >= amount;
      request.outcome = isAdmitted ? 'admitted' : host.credit.refusal(ACCOUNT);
      if (isAdmitted) {
        host.credit.reserve(ACCOUNT, amount, true);
        host.leases.push(amount);
      }
      // What was idle during this very step counts too.
      if (request.outcome === 'creditExhausted') this.#exhausted.push(request);
      this.counts[request.outcome as 'admitted'] += 1;
    };
    host.requests.push(request);
    const waiting = host.credit.wait(ACCOUNT, amount, decide);
    if (waiting === null) decide();
    else
      request.cancel = () => {
        if (waiting.cancel()) host.requests.splice(host.requests.indexOf(request), 1);
      };
    return request;
  }

  readonly #exhausted: Request[] = [];

  /** Part of a lease is charged, and perhaps the rest of it released. */
  #speak(host: Host): void {
    const lease = host.leases.shift();
    if (lease === undefined) return;
    const charged = Math.floor(this.#random() * (lease + 1));
    const isOver = this.#random() < 0.6;
    if (charged > 0) {
      const entry = { entry: ++host.lastEntry, amount: charged };
      this.#entriesOf(host.writer).push(entry);
      host.queue.push(entry);
      host.credit.append(ACCOUNT, entry.entry, charged);
    }
    if (!isOver && lease > charged) host.leases.push(lease - charged);
    host.credit.release(ACCOUNT, isOver ? lease : charged);
  }

  #entriesOf(writer: number): Entry[] {
    const known = this.#entries.get(writer) ?? [];
    this.#entries.set(writer, known);
    return known;
  }

  #commit(host: Host): void {
    if (host.isCommitting || host.queue.length === 0 || host.isBarred) return;
    const batch = host.queue.slice(0, 1 + Math.floor(this.#random() * 4));
    host.isCommitting = true;
    host.sent.push({
      deliver: async () => {
        const allotments = await this.#bank.append(host.writer, batch);
        if (allotments !== null) this.counts.settled += batch.length;
        return () => {
          host.isCommitting = false;
          if (allotments === null) {
            host.isBarred = true;
            return;
          }
          const through = batch.at(-1)!.entry;
          host.acknowledged = through;
          host.queue = host.queue.filter(({ entry }) => entry > through);
          host.credit.committed(through, [ACCOUNT], allotments);
        };
      },
      fail: () => (host.isCommitting = false),
    });
  }

  #exchange(host: Host): void {
    if (host.isBarred) return;
    host.credit.beat();
    const { acknowledged } = host;
    const sentAtMs = this.#nowMs;
    const asked = host.credit.exchanges();
    if (asked.length === 0) return;
    host.sent.push({
      deliver: async () => {
        const answers = await this.#bank.exchange(host.writer, acknowledged, asked);
        this.#notify(host, asked, answers);
        return () =>
          asked.forEach((sent, index) => {
            const answer = answers?.[index] ?? null;
            if (answer === null) host.credit.failed(sent);
            else host.credit.answered(answer, sent, sentAtMs);
          });
      },
      fail: () => asked.forEach((sent) => host.credit.failed(sent)),
    });
  }

  #notify(from: Host, asked: readonly Exchange[], answers: readonly (Exchanged | null)[] | null): void {
    asked.forEach((sent, index) => {
      const answer = answers?.[index] ?? null;
      if (answer === null) return;
      for (const host of this.#hosts)
        if (host !== from && !host.isCut)
          this.#notifications.push(() => {
            if (sent.mayCall && answer.reserved < sent.needed) host.credit.called(ACCOUNT, answer.call);
            else if (sent.answers > 0) host.credit.changed(ACCOUNT);
          });
    });
  }

  /** A message arrives, or is on its way for as long as the cut lasts. */
  async #deliver(host: Host): Promise<void> {
    if (host.isCut) return;
    const message = host.sent.shift();
    if (message !== undefined) host.answers.push({ apply: await message.deliver(), fail: message.fail });
  }

  /** Both sides of what is on its way: the database may do it later, and no answer comes. */
  #loseConnection(host: Host): void {
    const sent = host.sent.splice(0);
    this.#late.push(...sent);
    const lost = [...host.answers.splice(0), ...sent];
    for (const { fail } of lost) fail();
    if (lost.length > 0) this.counts.late += 1;
  }

  async #deliverLate(): Promise<void> {
    const [message] = this.#late.splice(Math.floor(this.#random() * this.#late.length), 1);
    await message?.deliver();
  }

  #cut(host: Host): void {
    this.counts.cuts += 1;
    host.isCut = true;
  }

  async #kill(host: Host): Promise<void> {
    this.counts.kills += 1;
    const { writer, queue, isDead } = host;
    this.#late.push(...host.sent.splice(0));
    this.#left.push({ writer, queue, used: queue.reduce((sum, { amount }) => sum + amount, 0), isDead });
    this.#hosts.splice(this.#hosts.indexOf(host), 1, this.#newHost());
    if (this.#random() < 0.7) await this.#sendLeft(this.#left.pop()!);
    await this.#bank.append(this.#writers, []);
  }

  async #sendLeft({
    writer,
    queue,
  }: {
    readonly writer: number;
    readonly queue: readonly Entry[];
  }): Promise<void> {
    const taken = queue.length === 0 || (await this.#bank.append(writer, queue)) !== null;
    if (taken) await this.#bank.end(writer);
    else this.#refusedWriters.add(writer);
  }

  async #declareDead(): Promise<void> {
    const left = this.#left.shift();
    const host = this.#hosts.find(({ isCut, isDead }) => isCut && !isDead);
    if (left !== undefined) {
      await this.#bank.declareDead(left.writer);
      this.#refusedWriters.add(left.writer);
    } else if (host !== undefined) {
      await this.#bank.declareDead(host.writer);
      this.#refusedWriters.add(host.writer);
      host.isDead = true;
    } else return;
    this.counts.deaths += 1;
  }

  async #advance(ms: number): Promise<void> {
    this.#nowMs += ms;
    await this.#bank.advance(ms);
    for (const { credit } of this.#hosts) credit.beat();
  }

  /** Credit that no lease and no entry uses. Of a dead host, nothing counts. */
  async #idle(): Promise<number> {
    let idle = await this.#bank.balance();
    for (const host of this.#hosts)
      if (!host.isDead) idle -= await this.#usedBy(host.writer, host.leases, host.queue);
    for (const { writer, queue } of this.#left) idle -= await this.#usedBy(writer, [], queue);
    return idle;
  }

  async #usedBy(writer: number, leases: readonly number[], queue: readonly Entry[]): Promise<number> {
    const settled = new Set((await this.#bank.entries(writer)).map(({ entry }) => entry));
    const open = queue.filter(({ entry }) => !settled.has(entry)).map(({ amount }) => amount);
    return [...leases, ...open].reduce((sum, amount) => sum + amount, 0);
  }

  async #check(): Promise<void> {
    const balance = await this.#bank.balance();
    const held = await this.#bank.allotments();
    const sum = held.reduce((total, { reserved, free }) => total + reserved + free, 0);
    if (sum > balance) throw new Error(`the allotments are ${sum}, and the balance is ${balance}`);
    if (balance < 0) throw new Error(`the balance is ${balance}`);
    for (const host of this.#hosts) {
      if (host.isDead) continue;
      const used = await this.#usedBy(host.writer, host.leases, host.queue);
      const reserved = held.find(({ writer }) => writer === host.writer)?.reserved ?? 0;
      if (used > reserved)
        throw new Error(`writer ${host.writer} uses ${used}, and the database knows ${reserved}`);
    }
    const idle = await this.#idle();
    for (const { requests } of this.#hosts)
      for (const request of requests) request.leastIdle = Math.min(request.leastIdle, idle);
    for (const { amount, leastIdle } of this.#exhausted.splice(0))
      if (Math.min(leastIdle, idle) >= amount)
        throw new Error(
          `a request for ${amount} was refused, and ${Math.min(leastIdle, idle)} were idle all the time`,
        );
  }
}

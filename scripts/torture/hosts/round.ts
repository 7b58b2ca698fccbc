/** One fault in traffic: what hosts and clients observed, and what the ledger must have for it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../../src/limits.js';
import { leftJournals } from '../../../src/store/journal.js';
import { EndpointClient, endpointsOf } from '../../rig/endpoints.js';
import { exchange, speechRequest } from '../../rig/http.js';
import type { Host, Hosts } from '../../rig/hosts.js';
import { comesTrue } from '../checks.js';
import type { Books } from '../kills/books.js';

/** Milliseconds for a busy machine, beyond the times that are stated. */
const MARGIN_MS = 2_000;
const REFUSED_MS_MAX = limits.storeStaleMsMax + MARGIN_MS;
const BACK_MS_MAX = 30_000;
const TEXT = 'The night train to the coast runs late again, and the guard reads out each stop. '.repeat(18);
const POOR_TEXT = 'Nobody on the platform knew whether the last tram had left already. '.repeat(2);

/**
 * What a client cannot see is when the last entry of its answer reached the file of the journal. The host writes it in a turn of its
 * own, after the end of the answer. An answer that ended so many milliseconds before a kill must be charged to the credit.
 */
const JOURNAL_MS_MAX = 500;
/**
 * An answer that ended later, or as its host died, may lack the entry of its end, which has less than a step, and the step before it,
 * which ends with a segment. No voice speaks another step within `JOURNAL_MS_MAX`.
 */
const LOST_CHARACTERS_MAX = 2 * limits.leaseStepCharacters + limits.segmentCharactersMax;

export class Round {
  readonly hosts: Hosts;
  readonly wrong: string[] = [];
  /** Milliseconds until a host refused new speech, and until all served again. */
  readonly refusedMs: number[] = [];
  readonly backMs: number[] = [];
  isOver = false;
  /** When hosts lost what they had in memory, by their number. */
  readonly #killedMs = new Map<number, number>();
  readonly #books: Books;
  readonly #key: string;

  constructor(hosts: Hosts, books: Books, key: string) {
    this.hosts = hosts;
    this.#books = books;
    this.#key = key;
  }

  /** Its journal has what the ledger must have after its next start. */
  async kill(host: Host): Promise<void> {
    this.#killedMs.set(host.number, performance.now());
    await host.service.kill();
    for (const journal of leftJournals(host.service.dataDir)) {
      journal.release();
      this.#books.expect(journal.entries);
    }
  }

  /**
   * @param host its number, if it is known
   * @param endedMs `null` unless the answer was speech to its end
   */
  answered(requestId: string, cost: number, host: number | undefined, endedMs: number | null): void {
    this.#books.answer(requestId, cost, endedMs === null ? 0 : this.#dueOf(cost, host, endedMs));
  }

  /** What must be charged at least. */
  #dueOf(cost: number, host: number | undefined, endedMs: number): number {
    // A host that was killed may not have logged which request was its own.
    const killed = host === undefined ? [...this.#killedMs.values()] : [this.#killedMs.get(host) ?? Infinity];
    const isWritten = killed.every((killedMs) => endedMs < killedMs - JOURNAL_MS_MAX);
    return isWritten ? cost : Math.max(0, cost - LOST_CHARACTERS_MAX);
  }

  /** Streams that were admitted before go on, and new ones are refused in time. */
  async withoutDatabase(
    awayMs: number,
    leave: () => void | Promise<void>,
    comeBack: () => void | Promise<void>,
  ): Promise<void> {
    const { all } = this.hosts;
    const streams = await Promise.all(all.map(({ port }) => this.#hold(port)));
    const leftMs = performance.now();
    await leave();
    if (awayMs > REFUSED_MS_MAX) await Promise.all(all.map((host) => this.#isRefused(host, leftMs)));
    for (const { socket } of streams) socket.resume();
    if (awayMs > 2 * REFUSED_MS_MAX) await this.#haveEnded(streams);
    await sleep(Math.max(0, awayMs - (performance.now() - leftMs)));
    await comeBack();
    await this.serveAgain();
    if (awayMs <= 2 * REFUSED_MS_MAX) await this.#haveEnded(streams);
  }

  /** Waits until each host admits speech. */
  async serveAgain(): Promise<void> {
    const fromMs = performance.now();
    for (const host of this.hosts.all)
      if (!(await comesTrue(async () => (await this.#ask(host)) === 200, BACK_MS_MAX)))
        this.wrong.push(`host ${host.number + 1} does not serve again`);
    this.backMs.push(performance.now() - fromMs);
  }

  /** A stream whose client stops reading after its first audio, so that the service cannot finish it. */
  async #hold(port: number): Promise<EndpointClient> {
    // More than the buffers on the way hold, at this rate.
    const format = { encoding: 'pcm', sampleRateHz: 48_000 } as const;
    const parts = { port, dialectPorts: {}, key: this.#key, voice: 'wren', text: TEXT, format };
    const client = new EndpointClient(endpointsOf(parts).requests[0]);
    await client.heard();
    client.socket.pause();
    return client;
  }

  async #haveEnded(streams: readonly EndpointClient[]): Promise<void> {
    for (const [host, stream] of streams.entries()) {
      const end = await stream.ended();
      stream.leave();
      if (end !== 'whole') this.wrong.push(`an admitted stream ended: ${end}, ${stream.head.slice(0, 15)}`);
      const requestId = /^x-request-id: (\S+)/im.exec(stream.head)?.[1] ?? '';
      this.answered(requestId, TEXT.length, host, end === 'whole' ? stream.endedMs : null);
    }
  }

  async #isRefused(host: Host, leftMs: number): Promise<void> {
    // An answer says what was so when its request was sent.
    let sentMs = leftMs;
    while (sentMs - leftMs <= REFUSED_MS_MAX) {
      sentMs = performance.now();
      if ((await this.#ask(host)) === 503) {
        this.refusedMs.push(sentMs - leftMs);
        return;
      }
      await sleep(50);
    }
    this.wrong.push(
      `host ${host.number + 1} still admits speech ${REFUSED_MS_MAX} ms after its database left`,
    );
  }

  /** Waits until every host is at rest. */
  async settle(): Promise<void> {
    for (const { number, service } of this.hosts.all) {
      if (!(await comesTrue(async () => (await service.unreadyReasons()) === '')))
        this.wrong.push(`host ${number + 1} is not ready`);
      if (!(await comesTrue(async () => (await service.status()).openContexts === 0)))
        this.wrong.push(`host ${number + 1} still has contexts`);
    }
  }

  /** All hosts spend the credit of one account until it has too little, or the round ends. */
  async spend(key: string): Promise<void> {
    await Promise.all(
      this.hosts.all.map(async (host) => {
        while (!this.isOver) {
          const status = await this.#ask(host, key, POOR_TEXT);
          if (status === 402) break;
          if (status !== 200) await sleep(200);
        }
      }),
    );
  }

  /** @returns the status of one request */
  async #ask({ number, port }: Host, key = this.#key, text = 'Still here.'): Promise<number> {
    const answer = await exchange(port, speechRequest({ key, voice: 'wren', text }));
    const id = answer.headers.get('x-request-id');
    const isSpeech = answer.status === 200;
    if (id !== undefined)
      this.answered(
        id,
        isSpeech ? text.length : 0,
        number,
        isSpeech && answer.isWhole ? performance.now() : null,
      );
    if (![0, 200, 402, 503].includes(answer.status))
      this.wrong.push(`host ${number + 1} answers ${answer.status}`);
    return answer.status;
  }
}

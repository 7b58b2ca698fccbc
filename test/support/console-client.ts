/** A browser's side of the console, without the browser: calls with cookies, and the ways to become somebody. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openWs, type WsClient } from './socket-client.js';
import { fetchAfterTurn } from './waiting.js';
import type { Answer, CallName, Question, Refusal } from '../../src/console/contract.js';

export const PASSWORD = 'correct horse battery';

/** A call that was refused. */
export class Refused extends Error {
  readonly status: number;
  readonly refusal: Refusal;

  constructor(name: string, status: number, refusal: Refusal) {
    super(`${name}: ${status} ${refusal.code}: ${refusal.message}`);
    this.status = status;
    this.refusal = refusal;
  }
}

export class ConsoleClient {
  readonly url: string;
  readonly cookies = new Map<string, string>();

  constructor(port: number) {
    this.url = `http://127.0.0.1:${port}`;
  }

  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  /** Opens a WebSocket of the playground. @throws the refusal, which comes after the handshake */
  async openSocket(accountId: number): Promise<WsClient> {
    const client = await openWs(Number(new URL(this.url).port), '', {
      path: `/api/socket?accountId=${accountId}`,
      headers: { cookie: this.cookie, origin: this.url },
    });
    // Its answer comes after the key was found.
    client.cancel('none');
    const { context_id: contextId, error } = await client.frame(() => true);
    if (contextId === undefined) throw new Error(`refused: ${error}`);
    return client;
  }

  /** Asks as the page does, and keeps cookies. */
  async ask(path: string, init: RequestInit = {}): Promise<Response> {
    const response = await fetchAfterTurn(this.url + path, {
      ...init,
      headers: {
        ...(this.cookies.size > 0 && { cookie: this.cookie }),
        'sec-fetch-site': 'same-origin',
        ...(init.headers as Record<string, string> | undefined),
      },
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return response;
  }

  post(path: string, body: unknown, more: Partial<RequestInit> = {}): Promise<Response> {
    return this.ask(path, {
      method: 'POST',
      ...more,
      headers: {
        'content-type': 'application/json',
        origin: this.url,
        ...(more.headers as Record<string, string> | undefined),
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  }

  /** @throws {Refused} */
  async call<N extends CallName>(name: N, question: Question<N>): Promise<Answer<N>> {
    const response = await this.post(`/api/${name}`, question);
    const answer: unknown = await response.json();
    if (response.status !== 200) throw new Refused(name, response.status, answer as Refusal);
    return answer as Answer<N>;
  }

  /** Makes the first operator, with the link that the start wrote. */
  static async claim(
    service: { consolePort: number; dataDir: string },
    name = 'olga',
  ): Promise<ConsoleClient> {
    const client = new ConsoleClient(service.consolePort);
    const link = readFileSync(join(service.dataDir, 'console-link'), 'utf8').trim();
    const token = new URL(link).hash.slice(1);
    await client.call('claim', { token, name, password: PASSWORD });
    return client;
  }

  /** Makes a member of an account, or with `null` another operator. */
  async invited(accountId: number | null, name: string): Promise<ConsoleClient> {
    const { url } = await this.call('invite', { accountId });
    const client = new ConsoleClient(Number(new URL(this.url).port));
    await client.call('acceptInvitation', { token: new URL(url).hash.slice(1), name, password: PASSWORD });
    return client;
  }
}

/** The clients at the other end of the cable: six kinds of the public port, and one for each endpoint of the dialects. */
import { dialectEndpoints, EndpointClient, type Endpoint } from '../../rig/endpoints.js';
import { encodeRequest, speechRequest } from '../../rig/http.js';
import { serveLoad, type LoadProcess } from '../../rig/load-process.js';
import { RawConnection } from '../../rig/raw-connection.js';
import { encodeHandshake, encodeMessage, encodeStart } from '../../rig/socket.js';

interface ConnectOrder {
  readonly host: string;
  readonly port: number;
  readonly dialectPorts: Readonly<Record<string, number>>;
  readonly voice: string;
  readonly keys: readonly string[];
  readonly count: number;
}

const clientsPerKey = 12;
/** The cases of `connectOne`. */
const publicKinds = 6;
const format = { encoding: 'pcm', sampleRateHz: 24_000 } as const;
const text = 'The client that asked for this has vanished, and the cable with it. '.repeat(60);

/** Hears the first audio of an endpoint, and reads nothing more. */
const listen = async (endpoint: Endpoint, host: string): Promise<void> => {
  const client = new EndpointClient(endpoint, { host });
  await client.heard();
  client.socket.pause();
  if (client.heardMs === 0) throw new Error(`no audio: ${client.tail}`);
};

const connectOne = async ({ host, keys, port, voice }: ConnectOrder, i: number): Promise<void> => {
  const client = new RawConnection({ host, port });
  const key = keys[Math.floor(i / clientsPerKey) % keys.length]!;
  const request = encodeRequest(speechRequest({ key, voice, text }));
  // Reads only the first bytes: the service then has more to send than the system buffers.
  client.socket.once('data', () => client.socket.pause());
  if (!(await client.connected())) throw new Error('no connection');
  switch (i % publicKinds) {
    case 0:
      // Sends nothing.
      return;
    case 1:
      // Is answered, and keeps the connection.
      client.write(encodeRequest({ path: '/healthz' }));
      break;
    case 2:
      // Sends a part of its body.
      client.write(request.subarray(0, 1_000));
      return;
    case 3:
      // Hears a stream.
      client.write(request);
      break;
    default:
      // A WebSocket that is idle (4) or speaks (5).
      client.write(encodeHandshake(key));
      await client.answered();
      if (i % publicKinds === 5)
        client.write(
          Buffer.concat([
            encodeStart({ voice }),
            encodeMessage({ send_text: text }),
            encodeMessage({ flush: true }),
          ]),
        );
  }
  const status = await client.answered();
  if (status !== '200' && status !== '101') throw new Error(`answered ${status}`);
};

/** Resolves when all are connected. */
const connect = async (order: ConnectOrder): Promise<void> => {
  const [dialectKey = '', ...keys] = order.keys;
  await Promise.all([
    ...Array.from({ length: order.count }, (_, i) => connectOne({ ...order, keys }, i)),
    ...dialectEndpoints({ ...order, key: dialectKey, text, format }).map((endpoint) =>
      listen(endpoint, order.host),
    ),
  ]);
};

const calls = { connect };
export type HalfOpenLoad = LoadProcess<typeof calls>;

serveLoad(calls);

/** The clients at the other end of the cable: six kinds of the public port, and one for each endpoint of the dialects. */
import {
  dialectEndpoints,
  EndpointClient,
  endpointsOf,
  type Endpoint,
  type EndpointParts,
} from '../../rig/endpoints.js';
import { encodeRequest } from '../../rig/http.js';
import { serveLoad, type LoadProcess } from '../../rig/load-process.js';
import { RawConnection } from '../../rig/raw-connection.js';
import { encodeHandshake } from '../../rig/socket.js';

interface ConnectOrder extends Pick<EndpointParts, 'port' | 'dialectPorts' | 'voice'> {
  readonly host: string;
  readonly keys: readonly string[];
  readonly count: number;
}

const clientsPerKey = 12;
const format = { encoding: 'pcm', sampleRateHz: 24_000 } as const;
const text = 'The client that asked for this has vanished, and the cable with it. '.repeat(60);

/** Hears the first audio of an endpoint, and reads nothing more: the service has more to send than the system buffers. */
const listen = async (endpoint: Endpoint, host: string): Promise<void> => {
  const client = new EndpointClient(endpoint, { host });
  await client.heard();
  client.socket.pause();
  if (client.heardMs === 0) throw new Error(`no audio: ${client.tail}`);
};

/** Sends some bytes, waits for an answer if there is one to them, and keeps the connection. */
const keep = async (
  order: ConnectOrder,
  bytes: Uint8Array | string,
  answer: string | null,
): Promise<void> => {
  const client = new RawConnection(order);
  if (!(await client.connected())) throw new Error('no connection');
  client.write(bytes);
  const status = answer === null ? null : await client.answered();
  if (status !== answer) throw new Error(`answered ${String(status)}`);
};

const connectOne = (order: ConnectOrder, i: number): Promise<void> => {
  const key = order.keys[Math.floor(i / clientsPerKey) % order.keys.length]!;
  const { requests, sockets } = endpointsOf({ ...order, key, text, format });
  const kinds = [
    () => keep(order, '', null),
    () => keep(order, encodeRequest({ path: '/healthz' }), '200'),
    // A part of its body.
    () => keep(order, requests[0].request.subarray(0, 1_000), null),
    () => listen(requests[0], order.host),
    () => keep(order, encodeHandshake(key), '101'),
    () => listen(sockets[0], order.host),
  ];
  return kinds[i % kinds.length]!();
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

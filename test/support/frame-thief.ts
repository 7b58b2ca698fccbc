/** A proxy before the service that loses or doubles one WebSocket frame, as a fault of the service would. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { Test } from 'tap';

export type Theft = 'lost' | 'doubled' | 'none';

const isMessage = (frame: Buffer, wanted: string): boolean =>
  frame.toString('latin1', 2, 40).includes(wanted);

/** The length of the first frame; `null` if its head is incomplete. */
const frameLength = (bytes: Buffer): number | null => {
  if (bytes.length < 2) return null;
  const short = bytes[1]! & 0x7f;
  if (short < 126) return 2 + short;
  if (short === 126) return bytes.length < 4 ? null : 4 + bytes.readUInt16BE(2);
  return bytes.length < 10 ? null : 10 + Number(bytes.readBigUInt64BE(2));
};

/** Passes bytes on; after the handshake frame by frame. */
const relay = (client: Socket, server: Socket, steal: (frame: Buffer) => readonly Buffer[]): void => {
  let rest: Buffer = Buffer.alloc(0);
  let mode: 'head' | 'frames' | 'plain' = 'head';
  server.on('data', (bytes: Buffer) => {
    if (mode === 'plain') {
      client.write(bytes);
      return;
    }
    rest = Buffer.concat([rest, bytes]);
    if (mode === 'head') {
      const end = rest.indexOf('\r\n\r\n');
      if (end < 0) return;
      mode = rest.toString('latin1', 0, 12) === 'HTTP/1.1 101' ? 'frames' : 'plain';
      const passed = mode === 'frames' ? end + 4 : rest.length;
      client.write(rest.subarray(0, passed));
      rest = rest.subarray(passed);
      if (mode === 'plain') return;
    }
    for (
      let length = frameLength(rest);
      length !== null && length <= rest.length;
      length = frameLength(rest)
    ) {
      for (const frame of steal(rest.subarray(0, length))) client.write(frame);
      rest = rest.subarray(length);
    }
  });
};

/** @returns the port of a proxy that loses or doubles the n-th frame of audio */
export const startThief = async (
  t: Test,
  servicePort: number,
  theft: Theft,
  nth: number,
): Promise<number> => {
  let seen = 0;
  const steal = (frame: Buffer): readonly Buffer[] => {
    if (!isMessage(frame, '{"audio_chunk"') || ++seen !== nth || theft === 'none') return [frame];
    return theft === 'lost' ? [] : [frame, frame];
  };
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(servicePort, '127.0.0.1');
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    client.pipe(upstream);
    relay(client, upstream, steal);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
};

/** What speaks to the port by mistake, or tries its luck: no HTTP/1.1 at all. */
import type { Dice } from '../dice.js';
import type { Made } from './input.js';
import { mutate } from './mutate.js';

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');

/** A TLS 1.2 ClientHello, as far as its extensions. */
const tlsHello = Buffer.concat([
  latin1('\x16\x03\x01\x00\xc4\x01\x00\x00\xc0\x03\x03'),
  Buffer.alloc(32, 0xa5),
  latin1('\x20'),
  Buffer.alloc(32, 0x5a),
  latin1('\x00\x06\x13\x01\x13\x02\x13\x03\x01\x00\x00\x71'),
  Buffer.alloc(113, 0x00),
]);

const openings: readonly Buffer[] = [
  tlsHello,
  latin1('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00'),
  latin1('SSH-2.0-OpenSSH_9.6\r\n'),
  latin1('PROXY TCP4 192.0.2.1 192.0.2.2 4711 80\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'),
  latin1('\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\xc0\0\x02\x02\x12\x67\0\x50'),
  latin1('\x05\x01\x00'),
  latin1('\x04\x01\x00\x50\xc0\x00\x02\x01\x00'),
  latin1('\x00\x00\x00\x2f\xffSMB'),
  latin1('\x03\x00\x00\x13\x0e\xe0\x00\x00\x00\x00\x00\x01\x00\x08\x00\x03\x00\x00\x00'),
  latin1('*1\r\n$4\r\nPING\r\n'),
  latin1('EHLO localhost\r\n'),
  latin1('GET /\r\n'),
  latin1('GET /v1/tts/speakers\n'),
  latin1('OPTIONS sip:a SIP/2.0\r\nVia: SIP/2.0/TCP a\r\n\r\n'),
  latin1('OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n'),
  latin1('\r\n\r\n\r\n\r\n'),
  Buffer.alloc(1),
  Buffer.alloc(5_000, 0),
  Buffer.alloc(20_000, 'A'),
];

export const otherProtocolInput = (dice: Dice): Made => {
  const bytes = dice.chance(0.3) ? dice.bytes(dice.between(1, 600)) : dice.pick(openings);
  return {
    kind: 'no HTTP',
    bytes: dice.chance(0.5) ? bytes : mutate(bytes, dice, dice.between(1, 3)),
    afterUpgrade: null,
  };
};

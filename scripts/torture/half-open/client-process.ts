/**
 * The clients at the other end of the cable, a sixth each: who has sent nothing, who was answered and keeps the
 * connection, who is in the midst of a body, who hears a stream, whose WebSocket idles, whose WebSocket speaks. Says
 * `ready` when all are there, and waits for its end.
 */
import { encodeMessage } from '../../rig-old/socket-connection.js';
import { ByteClient, handshakeRequest, speechRequest } from '../floods/clients.js';

const [host = '', port = '', voice = '', count = '', ...keys] = process.argv.slice(2);

const text = 'Whoever listened to this has gone without a word, and the cable with them. '.repeat(60);

const clients = Array.from({ length: Number(count) }, async (_, i) => {
  const client = new ByteClient(Number(port), host);
  const key = keys[Math.floor(i / 12) % keys.length]!;
  // What came first is enough: nobody reads on, and the service has more to send than the system takes.
  client.socket.once('data', () => client.socket.pause());
  if (!(await client.connected())) throw new Error('no connection');
  switch (i % 6) {
    case 0:
      return;
    case 1:
      client.socket.write('GET /healthz HTTP/1.1\r\nHost: torture\r\n\r\n');
      break;
    case 2:
      client.socket.write(speechRequest(key, voice, text).slice(0, 1_000));
      return;
    case 3:
      client.socket.write(speechRequest(key, voice, text));
      break;
    default:
      client.socket.write(handshakeRequest(key));
      await client.status();
      if (i % 6 === 5)
        client.socket.write(
          Buffer.concat([
            encodeMessage({ start_context: { voice_id: voice, model_id: 'default' } }),
            encodeMessage({ send_text: text }),
            encodeMessage({ flush: true }),
          ]),
        );
  }
  const status = await client.status();
  if (status !== '200' && status !== '101') throw new Error(`answered ${status}`);
});

await Promise.all(clients);
process.stdout.write('ready\n');
setInterval(() => undefined, 60_000);

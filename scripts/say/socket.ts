/** Speaks as a voice agent does: over a WebSocket, word by word, as a language model writes them. */
import {
  type Encoding,
  type SpeechContext,
  SyrinxError,
  type SyrinxErrorCode,
  connect,
} from '../../src/client/index.js';
import { SayError, type Speech, type SpeechRecord, messages } from './service.js';

const explain = (error: SyrinxError, url: string): SayError => {
  const byCode: Partial<Record<SyrinxErrorCode, string>> = {
    invalid_api_key: messages.unknownKey,
    insufficient_credits: messages.noCredit,
    rate_limited: messages.noSlot,
    unreachable: messages.noService(url),
    connection_lost: messages.brokenOff,
  };
  return new SayError(byCode[error.code] ?? error.message);
};

const sendWords = async (context: SpeechContext, text: string): Promise<void> => {
  for (const [word] of text.matchAll(/\s*\S+\s*|\s+/g)) if (!context.send(word)) await context.drained();
  await context.close();
};

/** The records of one utterance, as they arrive. @throws {SayError} */
export async function* speakOverSocket(
  url: string,
  key: string,
  { text, voice, encoding, sampleRateHz }: Speech,
): AsyncGenerator<SpeechRecord, void, void> {
  try {
    await using client = await connect({ url, apiKey: key, reconnect: false });
    const context = client.context({
      voiceId: voice,
      // The service accepts more names than the client's type, and refuses unknown ones.
      format: { encoding: encoding as Encoding, ...(sampleRateHz !== null && { sampleRateHz }) },
      timestamps: true,
    });
    // The reader below gets the same error.
    sendWords(context, text).catch(() => undefined);
    for await (const event of context) {
      if (event.type === 'audio') yield { type: 'audio', bytes: Buffer.from(event.audio.buffer) };
      else if (event.type === 'word') yield { type: 'timestamps', words: 1 };
    }
  } catch (error) {
    if (error instanceof SyrinxError) throw explain(error, url);
    if (error instanceof TypeError) throw new SayError(error.message);
    throw error;
  }
}

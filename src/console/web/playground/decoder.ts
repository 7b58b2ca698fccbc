/** Decodes audio as it streams. The playground plays the same bytes that it offers for download. */
import type { AudioFormat, CodecFormat, Encoding, SpecifiedEncoding } from '../../../api/formats.js';

export type Samples = Float32Array<ArrayBuffer>;

type Codec = Extract<SpecifiedEncoding, CodecFormat['encoding']>;
type SampleEncoding = Exclude<SpecifiedEncoding, Codec>;

export interface Decoder {
  /** @param bytes of one record of a stream */
  push(bytes: Uint8Array<ArrayBuffer>): void;
  /** Resolves when all samples have come. Rejects if the bytes are not audio of this format. */
  finish(): Promise<void>;
  /** Idempotent. */
  close(): void;
}

const opusHz = 48_000;

/** Of the samples that a decoder makes. */
export const decodedRateHz = ({ encoding, sampleRateHz }: AudioFormat): number =>
  encoding === 'opus' ? opusHz : sampleRateHz;

/** G.711: the samples of all 256 bytes. */
const mulaw = Float32Array.from({ length: 256 }, (_, byte) => {
  const code = ~byte & 0xff;
  const magnitude = ((((code & 0x0f) << 3) + 0x84) << ((code >> 4) & 7)) - 0x84;
  return (code & 0x80 ? -magnitude : magnitude) / 32_768;
});
const alaw = Float32Array.from({ length: 256 }, (_, byte) => {
  const code = byte ^ 0x55;
  const exponent = (code >> 4) & 7;
  const mantissa = ((code & 0x0f) << 4) + 8;
  const magnitude = exponent === 0 ? mantissa : (mantissa + 0x100) << (exponent - 1);
  return (code & 0x80 ? magnitude : -magnitude) / 32_768;
});

/** Signed 16-bit little-endian. */
const linear = (bytes: Uint8Array): Samples => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float32Array.from(
    { length: bytes.length >> 1 },
    (_, index) => view.getInt16(2 * index, true) / 32_768,
  );
};

/** @returns the offset past the header of a RIFF file with samples, 0 if there is none */
export const riffHeaderBytes = (bytes: Uint8Array): number => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const riff = 0x5249_4646;
  const data = 0x6461_7461;
  if (bytes.length < 12 || view.getUint32(0) !== riff) return 0;
  for (let at = 12; at + 8 <= bytes.length; at += 8 + view.getUint32(at + 4, true))
    if (view.getUint32(at) === data) return at + 8;
  return 0;
};

const sampleDecoders: Record<SampleEncoding, (record: Uint8Array) => Samples> = {
  pcm: linear,
  // A record of a stream has no header, a whole one, or nothing but one.
  wav: (record) => linear(record.subarray(riffHeaderBytes(record))),
  linear16: (record) => linear(record.subarray(riffHeaderBytes(record))),
  mulaw: (record) => Float32Array.from(record, (byte) => mulaw[byte]!),
  alaw: (record) => Float32Array.from(record, (byte) => alaw[byte]!),
};

/** What a codec made, without its container. Our encoders cut no frame, page or packet at the end of a record. */
interface Unpacked {
  readonly packets: readonly Uint8Array[];
  /** Samples up to the end of the stream, those that a decoder skips at its start included; `null`: it is not known here. */
  readonly endSample: number | null;
}

/** kbps of MPEG 1 and of MPEG 2 and 2.5, layer III, by the index in a frame's header. */
const mpeg1Kbps = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const mpeg2Kbps = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const mpeg1Hz = [44_100, 48_000, 32_000];
const mpegHeaderBytes = 4;

/** @returns 0 where no frame of MPEG layer III begins */
const mpegFrameBytes = (bytes: Uint8Array, at: number): number => {
  const [first = 0, second = 0, third = 0] = bytes.subarray(at, at + 3);
  const version = (second >> 3) & 3;
  if (first !== 0xff || second >> 5 !== 7 || version === 1 || ((second >> 1) & 3) !== 1) return 0;
  const kbps = (version === 3 ? mpeg1Kbps : mpeg2Kbps)[third >> 4] ?? 0;
  const hz = (mpeg1Hz[(third >> 2) & 3] ?? 0) / (version === 3 ? 1 : version === 2 ? 2 : 4);
  if (kbps === 0 || hz === 0) return 0;
  return Math.floor(((version === 3 ? 144 : 72) * kbps * 1_000) / hz) + ((third >> 1) & 1);
};

/** Frames of MPEG layer III, each with its header. */
const unpackMpeg = (bytes: Uint8Array): Unpacked => {
  const packets: Uint8Array[] = [];
  for (let at = 0; at + mpegHeaderBytes <= bytes.length;) {
    const length = mpegFrameBytes(bytes, at);
    if (length > 0) packets.push(bytes.subarray(at, at + length));
    at += Math.max(1, length);
  }
  return { packets, endSample: null };
};

const pageHeaderBytes = 27;
/** The bit of the last page in the flags of a page. */
const lastPage = 4;
/** A packet goes on behind a segment of this length. */
const fullSegmentBytes = 255;

/** Packets of an Ogg stream. */
const unpackOgg = (bytes: Uint8Array): Unpacked => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const packets: Uint8Array[] = [];
  let endSample: number | null = null;
  for (let page = 0; page + pageHeaderBytes <= bytes.length;) {
    const lacing = bytes.subarray(page + pageHeaderBytes, page + pageHeaderBytes + bytes[page + 26]!);
    if ((bytes[page + 5]! & lastPage) !== 0) endSample = Number(view.getBigUint64(page + 6, true));
    let start = page + pageHeaderBytes + lacing.length;
    let end = start;
    for (const length of lacing) {
      end += length;
      if (length === fullSegmentBytes) continue;
      packets.push(bytes.subarray(start, end));
      start = end;
    }
    page = end;
  }
  return { packets, endSample };
};

const codecs: Record<Codec, (bytes: Uint8Array) => Unpacked> = { mp3: unpackMpeg, opus: unpackOgg };
const isCodec = (encoding: Encoding): encoding is Codec => Object.hasOwn(codecs, encoding);

/** Browsers have codecs for streams only where the page came over HTTPS or from this machine. */
export const decodesStreams = (encoding: Encoding): boolean =>
  !isCodec(encoding) || typeof AudioDecoder === 'function';

/** The browser's own codecs, packet by packet. */
class StreamDecoder implements Decoder {
  readonly #decoder: AudioDecoder;
  readonly #encoding: Codec;
  readonly #rateHz: number;
  #packets = 0;
  /** Samples that were handed out. */
  #emitted = 0;
  /** Samples that the decoder leaves out at the start of the stream. */
  #skipped = 0;
  #endSample: number | null = null;
  #error: Error | null = null;

  constructor(encoding: Codec, rateHz: number, emit: (samples: Samples) => void) {
    this.#encoding = encoding;
    this.#rateHz = rateHz;
    this.#decoder = new AudioDecoder({
      output: (data) => {
        const samples = new Float32Array(data.numberOfFrames);
        data.copyTo(samples, { planeIndex: 0, format: 'f32-planar' });
        data.close();
        // The last packet can be longer than the rest of the audio.
        const end = (this.#endSample ?? Infinity) - this.#skipped;
        emit(samples.subarray(0, Math.max(0, end - this.#emitted)));
        this.#emitted += samples.length;
      },
      error: (error) => (this.#error ??= error),
    });
  }

  push(bytes: Uint8Array): void {
    const { endSample, packets } = codecs[this.#encoding](bytes);
    this.#endSample ??= endSample;
    for (const packet of packets) this.#decode(packet);
  }

  async finish(): Promise<void> {
    if (this.#decoder.state === 'configured') await this.#decoder.flush();
    if (this.#error !== null) throw this.#error;
  }

  close(): void {
    if (this.#decoder.state !== 'closed') this.#decoder.close();
  }

  #decode(packet: Uint8Array): void {
    const encoding = this.#encoding;
    const index = this.#packets++;
    if (this.#error !== null) return;
    if (index === 0 && encoding === 'opus')
      this.#skipped = new DataView(packet.buffer, packet.byteOffset).getUint16(10, true);
    if (index === 0)
      this.#decoder.configure({
        codec: encoding,
        sampleRate: this.#rateHz,
        numberOfChannels: 1,
        // The first packet of Opus describes the stream, the second has its tags.
        ...(encoding === 'opus' && { description: packet }),
      });
    if (encoding === 'opus' && index < 2) return;
    this.#decoder.decode(new EncodedAudioChunk({ type: 'key', timestamp: index, data: packet }));
  }
}

/** For browsers that decode whole files only: the samples come at the end. */
const fileDecoder = (context: BaseAudioContext, emit: (samples: Samples) => void): Decoder => {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  return {
    push: (bytes) => void parts.push(bytes),
    finish: async () => {
      if (parts.length === 0) return;
      const audio = await context.decodeAudioData(await new Blob(parts).arrayBuffer());
      emit(audio.getChannelData(0));
    },
    close: () => void parts.splice(0),
  };
};

export const openDecoder = (
  format: AudioFormat,
  context: BaseAudioContext,
  emit: (samples: Samples) => void,
): Decoder => {
  const { encoding } = format;
  if (!isCodec(encoding)) {
    const decode = sampleDecoders[encoding as SampleEncoding];
    return {
      push: (bytes) => emit(decode(bytes)),
      finish: () => Promise.resolve(),
      close: () => undefined,
    };
  }
  return decodesStreams(encoding)
    ? new StreamDecoder(encoding, decodedRateHz(format), emit)
    : fileDecoder(context, emit);
};

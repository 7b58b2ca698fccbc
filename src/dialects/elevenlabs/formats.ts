/** The names of formats: `mp3_44100_128`, `pcm_24000`, `ulaw_8000` ... are formats of the common table. */
import { resolveFormat, type AudioFormat } from '../../api/formats.js';
import { valueError, type Issue } from '../../api/issues.js';
import { quoted } from '../../api/quoted.js';
import type { Query } from '../../front/query.js';
import type { Bounds } from '../../limits.js';

const DEFAULT_FORMAT = 'mp3_44100_128';

const shape = /^(mp3|pcm|ulaw|alaw|opus|wav)_(\d{1,6})(?:_(\d{1,4}))?$/;

/** @param query of the request @returns the format, or what is wrong with its name */
export const formatIn = (query: Query, bounds: Bounds): AudioFormat | Issue => {
  const name = query.get('output_format') || DEFAULT_FORMAT;
  const loc = ['query', 'output_format'];
  const [, encoding, rate, bitrate] = shape.exec(name) ?? [];
  const fields = { encoding, sample_rate: Number(rate), bitrate: bitrate ?? null };
  const resolved = encoding === undefined ? null : resolveFormat(fields, bounds);
  if (resolved?.ok === true) return resolved.format;
  const why = resolved?.faults[0]?.message ?? 'mp3, pcm, ulaw, alaw, opus and wav can be made';
  return valueError(loc, name, `Unsupported output_format ${quoted(name, bounds)}: ${why}`);
};

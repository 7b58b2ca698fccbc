/** Properties of request bodies: the parsers against a second opinion. */
import fc from 'fast-check';
import type { Test } from 'tap';
import { limits } from '../../src/limits.js';
import { openApiDocument } from '../../src/api/openapi.js';
import { parseSpeechRequest } from '../../src/api/speech-request.js';
import { parseVoicePlatform } from '../../src/api/voice-platform.js';
import { Description } from '../support/description.js';
import { asText, brokenText, platformBodies, speechBodies } from './bodies.js';
import { check } from './check.js';
import { answered, type Item } from '../support/items.js';
import { platformItems, speechItems } from './oracle.js';

const description = new Description(JSON.parse(JSON.stringify(openApiDocument(['wren'], limits))));

/** Compares bytes, so that a fault in the words of an item counts. */
const compare = (
  result: { readonly ok: true } | { readonly ok: false; readonly status: number; readonly body: string },
  items: readonly Item[],
): void => {
  if (result.ok !== (items.length === 0))
    throw new Error(`decided ${result.ok} against ${JSON.stringify(items)}`);
  if (result.ok) return;
  if (result.status !== 422) throw new Error(`status ${result.status}`);
  const expected = JSON.stringify({ detail: answered(items) });
  if (result.body !== expected) throw new Error(`answered\n${result.body}\nand not\n${expected}`);
};

/** @param share of the full number of runs */
export const testBodies = (t: Test, share: number): void => {
  t.test('speech requests get exactly the items of a second opinion', async (t) => {
    let valid = 0;
    const property = fc.property(asText(speechBodies('wren')), (text) => {
      const body: unknown = JSON.parse(text);
      const result = parseSpeechRequest(Buffer.from(text), 'application/json', limits);
      compare(result, speechItems(body));
      if (!result.ok) return;
      valid += 1;
      const fault = description.valueFault('SpeechRequestBody', body);
      if (fault !== null) throw new Error(`the description does not allow it: ${fault}`);
    });
    const runs = await check(t, property, 70_000 * share);
    t.ok(valid > runs / 35, `${valid} of them valid`);
  });

  t.test('messages of voice-agent platforms get exactly the items of a second opinion', async (t) => {
    let valid = 0;
    const voices = fc.constantFrom(null, 'wren', '');
    const property = fc.property(asText(platformBodies), voices, (text, voice) => {
      const body: unknown = JSON.parse(text);
      const result = parseVoicePlatform(Buffer.from(text), undefined, voice, limits);
      compare(result, platformItems(voice, body));
      if (result.ok) valid += 1;
      const described = description.valueFault('VoicePlatformBody', body) === null;
      if (described !== (platformItems('', body).length === 0))
        throw new Error(`the description says ${described} to ${text}`);
    });
    const runs = await check(t, property, 30_000 * share);
    t.ok(valid > runs / 15, `${valid} of them valid`);
  });

  t.test('any text is parsed without an exception, and its fault lies within it', async (t) => {
    const property = fc.property(brokenText, (sent) => {
      const text = sent.toWellFormed();
      let isJson = true;
      let isFinite = true;
      // The decoder of UTF-8 takes a byte order mark away.
      const decoded = text.replace(/^\ufeff/, '');
      try {
        JSON.parse(decoded, (_, value: unknown) => {
          isFinite &&= typeof value !== 'number' || Number.isFinite(value);
        });
      } catch {
        isJson = false;
      }
      for (const result of [
        parseSpeechRequest(Buffer.from(text), undefined, limits),
        parseVoicePlatform(Buffer.from(text), undefined, 'wren', limits),
      ]) {
        if (result.ok || text === '') continue;
        const { detail } = JSON.parse(result.body) as { detail: { type: string; loc: unknown[] }[] };
        const isFault = !(isJson && isFinite);
        if (isFault !== (detail[0]?.type === 'json_invalid')) throw new Error(`answered ${result.body}`);
        const position = isFault ? detail[0]?.loc[1] : undefined;
        if (typeof position === 'number' && (position < 0 || position > decoded.length))
          throw new Error(`outside: ${position}`);
      }
    });
    await check(t, property, 20_000 * share);
  });
};

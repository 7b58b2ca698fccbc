/** The table of dialects: which listeners a configuration asks for besides the public port. */
import type { Config } from '../config.js';
import type { FurtherListener } from '../front/server.js';
import { elevenLabs } from './elevenlabs/elevenlabs.js';
import { HttpListener, type DialectParts } from './http-listener.js';
import { openAi } from './openai/openai.js';
import { WyomingListener } from './wyoming/wyoming.js';

/** @param wyomingKeyId the key that clients of Wyoming use up, if that is on */
export const openDialects = (
  config: Pick<Config, 'elevenLabs' | 'openAi' | 'wyoming'>,
  parts: DialectParts,
  wyomingKeyId: number | null,
): readonly FurtherListener[] => {
  const listeners: FurtherListener[] = [];
  if (config.elevenLabs !== null)
    listeners.push(new HttpListener(parts, elevenLabs(config.elevenLabs, parts)));
  if (config.openAi !== null) listeners.push(new HttpListener(parts, openAi(config.openAi, parts)));
  if (config.wyoming !== null && wyomingKeyId !== null)
    listeners.push(new WyomingListener(parts, config.wyoming, wyomingKeyId));
  return listeners;
};

/** The table of dialects: the listeners of a configuration besides the public port. */
import type { PlaygroundKey } from '../accounts/administration.js';
import type { Config } from '../config.js';
import type { FurtherListener } from '../front/server.js';
import type { BrowserTokens } from '../accounts/browser-tokens.js';
import { browser } from './browser.js';
import { elevenLabs } from './elevenlabs/elevenlabs.js';
import { httpListener, type DialectParts } from './http-listener.js';
import { openAi } from './openai/openai.js';
import { wyoming } from './wyoming/wyoming.js';

/**
 * @param browserTokens `null`: the listener for browsers is off
 * @param wyomingPayer the key that pays for clients of Wyoming; `null`: Wyoming is off
 */
export const openDialects = (
  config: Pick<Config, 'browserPort' | 'elevenLabs' | 'openAi' | 'wyoming'>,
  parts: DialectParts,
  browserTokens: BrowserTokens | null,
  wyomingPayer: PlaygroundKey | null,
): readonly FurtherListener[] => {
  const listeners: FurtherListener[] = [];
  if (config.elevenLabs !== null) listeners.push(httpListener(parts, elevenLabs(config.elevenLabs, parts)));
  if (config.openAi !== null) listeners.push(httpListener(parts, openAi(config.openAi, parts)));
  if (config.browserPort !== null && browserTokens !== null)
    listeners.push(httpListener(parts, browser(config.browserPort, parts, browserTokens)));
  if (config.wyoming !== null && wyomingPayer !== null)
    listeners.push(wyoming(parts, config.wyoming, wyomingPayer));
  return listeners;
};

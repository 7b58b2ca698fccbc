/** The voices of the service, as it tells them. */
import type { TortureService } from './service.js';

export const speakersOf = async (service: TortureService): Promise<string[]> => {
  const [key = ''] = await service.makeKeys(1);
  const response = await fetch(`http://127.0.0.1:${String(service.port)}/v1/tts/speakers`, {
    headers: { 'x-api-key': key },
  });
  return ((await response.json()) as { speaker_ids: string[] }).speaker_ids;
};

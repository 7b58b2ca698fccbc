/** One request to its end. */

export interface Spoken {
  /** 0 when there was no response, or it broke off. */
  readonly status: number;
  readonly bytes: number;
}

export const speak = async (
  port: number,
  key: string,
  text: string,
  path: '/v1/tts' | '/v1/tts/stream' = '/v1/tts',
): Promise<Spoken> => {
  try {
    const response = await fetch(`http://127.0.0.1:${String(port)}${path}`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ text, voice: 'wren', response_format: 'pcm' }),
    });
    const { byteLength } = await response.arrayBuffer();
    return { status: response.status, bytes: byteLength };
  } catch {
    return { status: 0, bytes: 0 };
  }
};

/** Why it is not ready; empty when it is. */
export const readinessOf = async (port: number): Promise<string> => {
  const response = await fetch(`http://127.0.0.1:${String(port)}/readyz`);
  const { reasons = [] } = (await response.json()) as { reasons?: string[] };
  return response.status === 200 ? '' : reasons.join('; ');
};

/** Waits for what is to come. @returns whether it came */
export const comes = async (condition: () => Promise<boolean>, withinMs = 30_000): Promise<boolean> => {
  const endMs = performance.now() + withinMs;
  while (performance.now() < endMs) {
    if (await condition().catch(() => false)) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
};

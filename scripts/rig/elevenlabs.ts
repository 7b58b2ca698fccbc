/** What the service sends on the WebSockets of the ElevenLabs API. */
export interface Alignment {
  readonly chars: string[];
  readonly charStartTimesMs: number[];
  readonly charDurationsMs: number[];
}

export interface ElevenLabsMessage {
  readonly audio?: string | null;
  readonly isFinal?: boolean | null;
  readonly alignment?: Alignment | null;
  readonly normalizedAlignment?: Alignment | null;
  readonly contextId?: string;
  readonly error?: string;
  readonly message?: string;
  readonly code?: number;
}

/**
 * Audio formats as they are after validation: what an encoder needs to know, nothing that a client wrote.
 */

/** Canonical encoding names this build can produce. */
export type Encoding = 'wav' | 'pcm' | 'linear16';

export interface AudioFormat {
  readonly encoding: Encoding;
  readonly sampleRateHz: number;
}

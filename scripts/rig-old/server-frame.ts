/** As the specification has them; of all the frames that a WebSocket is sent. */
export interface ServerFrame {
  readonly context_id?: string;
  readonly context_started?: object;
  readonly audio_chunk?: string;
  readonly timestamps?: WordTimes;
  readonly flush_completed?: true;
  readonly flush_id?: string;
  readonly context_closed?: true;
  readonly error?: string;
}

export interface WordTimes {
  readonly words: readonly string[];
  readonly start_seconds: readonly number[];
  readonly end_seconds: readonly number[];
}

/** Descriptions of a fault for the log and for other threads. Never the message of an exception, which can quote a text or a key. */

/** The type of an error and where it arose. */
export const describeFault = (error: unknown): Record<string, unknown> => {
  if (!(error instanceof Error)) return { errorType: typeof error };
  const frames = error.stack?.split('\n').filter((line) => /^\s+at /.test(line));
  return {
    errorType: error.name,
    errorCode: (error as NodeJS.ErrnoException).code,
    stack: frames?.join('\n'),
  };
};

/** A rule of the service's own code is broken. Its message quotes nothing of a client's: it may be logged. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

/** The same in one phrase. */
export const faultPlace = (error: unknown): string => {
  if (!(error instanceof Error)) return `a thrown ${typeof error}`;
  if (error instanceof InvariantError) return error.message;
  const place = /(?<![\w.-])([\w.-]+:\d+:\d+)\)?$/m.exec(error.stack ?? '')?.[1];
  return place === undefined ? error.name : `${error.name} at ${place}`;
};

/** Units of UTF-16 that a message about a file keeps: its start names the file, its end says what to do. */
const startUnits = 700;
const endUnits = 300;

/**
 * A message about a file of a stranger, which may quote it: one line of bounded length, in which no character commands a
 * terminal or changes the order of reading.
 */
export const lineAbout = (message: string): string => {
  const isShort = message.length <= startUnits + endUnits;
  const line = isShort ? message : `${message.slice(0, startUnits)} … ${message.slice(-endUnits)}`;
  return line.toWellFormed().replace(/[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu, '\ufffd');
};

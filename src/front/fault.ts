/** What the log may know of an exception. */

/** Where an error arose, without its message: that can quote what a client sent. */
export const describeFault = (error: unknown): Record<string, unknown> => {
  if (!(error instanceof Error)) return { errorType: typeof error };
  const frames = error.stack?.split('\n').filter((line) => /^\s+at /.test(line));
  return {
    errorType: error.name,
    errorCode: (error as NodeJS.ErrnoException).code,
    stack: frames?.join('\n'),
  };
};

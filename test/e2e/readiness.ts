/** The answer of a `/readyz`; `null` while nothing listens there. */
export const readiness = async (port: number): Promise<string | null> => {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`);
    const { status, reasons = [] } = (await response.json()) as { status: string; reasons?: string[] };
    return [response.status, status, ...reasons].join(' | ');
  } catch {
    return null;
  }
};

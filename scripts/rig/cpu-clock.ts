/** Milliseconds of CPU time that this process has used so far. Other work of the machine changes it little. */
export const cpuTimeMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

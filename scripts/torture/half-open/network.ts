/** A network namespace at the other end of a virtual cable, which can be cut. Needs Linux, root and iproute2. */
import { spawnSync } from 'node:child_process';

const name = `syrinx-torture-${String(process.pid)}`;
const [ours, theirs] = [`sxa${String(process.pid)}`, `sxb${String(process.pid)}`];

/** Of the range reserved for network tests. */
const oursAddress = '198.18.77.1';
const theirsAddress = '198.18.77.2';

const ip = (...parameters: string[]): void => {
  const { error, status, stderr } = spawnSync('ip', parameters, { encoding: 'utf8' });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`ip ${parameters.join(' ')}: ${stderr.trim()}`);
};

export class Cable {
  /** Of the service's end. */
  readonly address = oursAddress;
  /** Runs a command at the other end. */
  readonly launcher = ['ip', 'netns', 'exec', name] as const;

  /** @throws where the system does not allow it */
  static lay(): Cable {
    ip('netns', 'add', name);
    const cable = new Cable();
    try {
      ip('link', 'add', ours, 'type', 'veth', 'peer', 'name', theirs, 'netns', name);
      ip('address', 'add', `${oursAddress}/30`, 'dev', ours);
      ip('link', 'set', ours, 'up');
      ip('-n', name, 'address', 'add', `${theirsAddress}/30`, 'dev', theirs);
      ip('-n', name, 'link', 'set', theirs, 'up');
    } catch (error) {
      cable.remove();
      throw error;
    }
    return cable;
  }

  /** Nothing gets through any more; neither end learns about it. */
  cut(): void {
    ip('-n', name, 'link', 'set', theirs, 'down');
  }

  /** Idempotent. */
  remove(): void {
    spawnSync('ip', ['netns', 'delete', name]);
    spawnSync('ip', ['link', 'delete', ours]);
  }
}
